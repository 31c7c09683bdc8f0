// Merges blocks' results over parts of the keys: a block for each row of q, head and pack
// of columns for each lane. Waves share out the parts, so that their loads are under way at once.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_softmax.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;     // as in ops/attention_rows.cc
constexpr int kMostSplits = 256;  // as there

template <int kWave>
RB_DEVICE void attention_join(const AttentionParams& p) {
  constexpr int kWaves = kThreads / kWave;
  RB_SHARED float scales[kMostSplits];
  RB_SHARED Pack<float> shared[kWaves][kWave];
  RB_SHARED float slots[kThreads / kWave];
  const i64 row = block_x();
  const i32 head = static_cast<i32>(block_y());
  // No sequence has the rows past the last one's.
  if (row >= p.seq_starts[p.batch * p.starts_step]) return;
  const i64 part = (row * p.heads + head) * p.splits;
  const int split = static_cast<int>(thread_x());
  float level = -infinity(), weights = 0;
  if (split < p.splits) {
    weights = p.partial_stats[2 * (part + split) + 1];
    if (weights > 0) level = p.partial_stats[2 * (part + split)];
  }
  const float top = block_max<kWave, kThreads>(level, slots);
  const float scale = level > -infinity() ? fast_exp2(level - top) : 0.0f;
  if (split < p.splits) scales[split] = scale;
  const float sum = with_sink(p, head, block_sum<kWave, kThreads>(weights * scale, slots), top);
  const float share = sum == 0 ? 0.0f : 1.0f / sum;
  const int wave = split / kWave, lane = split % kWave;
  const int column = (static_cast<int>(block_z()) * kWave + lane) * 4;
  Pack<float> out = {};
  if (column < p.v_dim) {
#pragma unroll 8
    for (int s = wave; s < p.splits; s += kWaves) {
      const Pack<float> in = load128(p.partial + (part + s) * p.v_dim + column);
      for (int i = 0; i < 4; ++i) out.values[i] += in.values[i] * scales[s];
    }
  }
  shared[wave][lane] = out;
  barrier();
  if (wave > 0 || column >= p.v_dim) return;
  for (int w = 1; w < kWaves; ++w) {
    for (int i = 0; i < 4; ++i) out.values[i] += shared[w][lane].values[i];
  }
  const i64 to = row * p.y_at.time + head * p.y_at.head + column * p.y_at.step;
  for (int i = 0; i < 4; ++i) {
    store_number<float>(p.y, p.q_type, to + i * p.y_at.step, out.values[i] * share);
  }
}

#define RB_JOIN(lanes, wave) \
  RB_KERNEL(attention_join_##wave, kThreads, AttentionParams, (attention_join<lanes>(p)))
RB_WAVES(RB_JOIN)

}  // namespace gpu
}  // namespace rbee
