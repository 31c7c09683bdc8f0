#pragma once
// Merges the results of a decoding block's waves, and of the blocks that share a query's keys.
// Waves merge in shared memory. The block that arrives last reads the other blocks' results.

#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_decode.h"
#include "backends/gpu/kernels/attention_softmax.h"

namespace rbee {
namespace gpu {

constexpr int kMostSplits = 256;  // as in ops/attention_decode.cc

// Blocks of this query and these heads that have keys; at least 1.
RB_DEVICE i32 splits_used(const KeyRange& all, i64 share) {
  const i64 used = share > 0 ? (all.end - all.first + share - 1) / share : 0;
  return used < 1 ? 1 : static_cast<i32>(used);
}

// Four neighbours of a head's result, of any type and step.
struct AnyHeadResult {
  RB_DEVICE static void write(const AttentionParams& p, i64 head, int pack, const Pack<float>& sums,
                              float sum) {
    const float scale = sum == 0 ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      store_number<float>(p.y, p.q_type, head + (4 * pack + i) * p.y_at.step,
                          sums.values[i] * scale);
    }
  }
};

template <class Tile, class Result>
class Merger {
 public:
  using Ends = typename Tile::Ends;

  struct Shared {
    float scale[Tile::kHeads][kMostSplits];  // of a split's sums, for the whole's
    float sum[Tile::kHeads];
    Pack<float> out[kWaves][Tile::kHeads][Tile::kDim / 4];
    u32 arrived;
  };

  RB_DEVICE Merger(const AttentionParams& p, const DecodeWork& work)
      : p_(p),
        work_(work),
        packs_(p.v_dim / 4),
        lane_(static_cast<int>(thread_x()) % Tile::kWave),
        wave_(static_cast<int>(thread_x()) / Tile::kWave) {}

  // Writes the result, or one of several splits. A wave takes a head.
  RB_DEVICE void waves(const Ends& ends, bool only) const {
    for (int h = wave_; h < work_.heads; h += kWaves) {
      float top = ends.top[0][h];
#pragma unroll
      for (int w = 1; w < kWaves; ++w) top = Max{}(top, ends.top[w][h]);
      float sum = 0;
      float scales[kWaves];
#pragma unroll
      for (int w = 0; w < kWaves; ++w) {
        scales[w] = top > -infinity() ? fast_exp2(ends.top[w][h] - top) : 0.0f;
        sum += ends.sum[w][h] * scales[w];
      }
      if (only) sum = with_sink(p_, work_.first_head + h, sum, top);
      for (int pack = lane_; pack < packs_; pack += Tile::kWave) {
        Pack<float> out = {};
#pragma unroll
        for (int w = 0; w < kWaves; ++w) {
          add_scaled(out, load128(&ends.out[w][h][4 * pack]), scales[w]);
        }
        if (only) {
          write(h, pack, out, sum);
        } else {
          store128(p_.partial + (part(h) + block_z()) * p_.v_dim + 4 * pack, out);
        }
      }
      if (lane_ == 0 && !only) {
        p_.partial_stats[2 * (part(h) + block_z())] = top;
        p_.partial_stats[2 * (part(h) + block_z()) + 1] = sum;
      }
    }
  }

  // True, in all threads of it, for the last of `used` blocks; their splits can then be read.
  RB_DEVICE bool arrive(i32 used, Shared& shared) const {
    release_to_device();
    barrier();
    if (thread_x() == 0) {
      u32* count = p_.arrivals + work_.index;
      shared.arrived = atomic_add(count, 1u);
      // Nothing else counts before the next kernel.
      if (shared.arrived + 1 == static_cast<u32>(used)) *count = 0;
    }
    barrier();
    if (shared.arrived + 1 != static_cast<u32>(used)) return false;
    acquire_from_device();
    return true;
  }

  // Waves share out the splits.
  RB_DEVICE void splits(i32 used, Shared& shared) const {
    for (int h = wave_; h < work_.heads; h += kWaves) scale_splits(h, used, shared);
    barrier();
    for (int h = 0; h < work_.heads; ++h) {
      for (int pack = lane_; pack < packs_; pack += Tile::kWave) {
        shared.out[wave_][h][pack] = sum_splits(h, pack, used, shared);
      }
    }
    barrier();
    for (int h = wave_; h < work_.heads; h += kWaves) {
      for (int pack = lane_; pack < packs_; pack += Tile::kWave) {
        Pack<float> out = {};
#pragma unroll
        for (int w = 0; w < kWaves; ++w) add_scaled(out, shared.out[w][h][pack], 1.0f);
        write(h, pack, out, shared.sum[h]);
      }
    }
  }

 private:
  RB_DEVICE static void add_scaled(Pack<float>& out, const Pack<float>& x, float scale) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out.values[i] += x.values[i] * scale;
  }

  // Index of a head's first split among all parts.
  RB_DEVICE i64 part(int h) const {
    return (static_cast<i64>(block_x()) * p_.heads + work_.first_head + h) * p_.splits;
  }

  // One wave calls it.
  RB_DEVICE void scale_splits(int h, i32 used, Shared& shared) const {
    const float* stats = p_.partial_stats + 2 * part(h);
    float top = -infinity();
    for (int s = lane_; s < used; s += Tile::kWave) top = Max{}(top, stats[2 * s]);
    top = wave_max<Tile::kWave>(top);
    float sum = 0;
    for (int s = lane_; s < used; s += Tile::kWave) {
      const float scale = top > -infinity() ? fast_exp2(stats[2 * s] - top) : 0.0f;
      shared.scale[h][s] = scale;
      sum += stats[2 * s + 1] * scale;
    }
    sum = with_sink(p_, work_.first_head + h, wave_sum<Tile::kWave>(sum), top);
    if (lane_ == 0) shared.sum[h] = sum;
  }

  // A pack of a head's columns over this wave's splits.
  RB_DEVICE Pack<float> sum_splits(int h, int pack, i32 used, const Shared& shared) const {
    const float* from = p_.partial + part(h) * p_.v_dim + 4 * pack;
    Pack<float> out = {};
#pragma unroll 8
    for (int s = wave_; s < used; s += kWaves) {
      add_scaled(out, load128(from + static_cast<i64>(s) * p_.v_dim), shared.scale[h][s]);
    }
    return out;
  }

  RB_DEVICE void write(int h, int pack, const Pack<float>& out, float sum) const {
    Result::write(p_, query_offset(p_.y_at, work_.span, work_.first_head + h, work_.query), pack,
                  out, sum);
  }

  const AttentionParams& p_;
  const DecodeWork& work_;
  int packs_;  // of 4 columns
  int lane_, wave_;
};

// A block's part of the result: AnyDecoder's results of all waves, merged. It finds the visible
// keys before the previous kernel has ended.
template <class AnyDecoder>
RB_DEVICE void decode(const AttentionParams& p) {
  using Tile = typename AnyDecoder::Tile;
  using OfBlocks = Merger<Tile, typename AnyDecoder::Result>;
  RB_SHARED union {
    typename Tile::Shared tile;
    typename OfBlocks::Shared merge;
  } shared;
  read_parameters(p);
  i64 share;
  DecodeWork work = decode_work<Tile::kHeads>(p, kWaves * Tile::kKeys, share);
  const i32 used = splits_used(work.keys, share);
  if (static_cast<i32>(block_z()) >= used) return;
  work.keys.first += block_z() * share;
  if (work.keys.first + share < work.keys.end) work.keys.end = work.keys.first + share;

  AnyDecoder decoder(p, work, shared.tile);
  decoder.run();
  const OfBlocks merger(p, work);
  merger.waves(shared.tile.ends, used == 1);
  if (used > 1 && merger.arrive(used, shared.merge)) merger.splits(used, shared.merge);
}

}  // namespace gpu
}  // namespace rbee
