// Attention of many queries on matrices of 8 x 8, dense and paged: FlashAttention-2 (Dao 2023). A
// block has 32 queries of one head, a wave eight of them; its sums stay in matrices, which a
// product with a diagonal matrix rescales. All in float, which rounds neither keys nor weights.
#include "backends/gpu/kernels/attention_cache.h"
#include "backends/gpu/kernels/attention_softmax.h"
#include "backends/metal/kernels/simdgroup_runs.h"

namespace rbee {
namespace gpu {

constexpr int kLanes = 32;
constexpr int kWaves = 4;
constexpr int kThreads = kWaves * kLanes;
constexpr int kWaveRows = 8;
constexpr int kTileRows = kWaves * kWaveRows;
constexpr int kKeys = 32;    // of a step
constexpr int kChunk = 64;   // elements of a head that are staged at a time
constexpr int kPitch = 68;   // of staged rows: the lines of a matrix begin in different banks
constexpr int kScores = 36;  // of scores' rows
constexpr int kOfRow = kLanes / kWaveRows;  // lanes that share a query's softmax
constexpr int kOfLane = kKeys / kOfRow;     // its scores in each

struct SimdgroupShared {
  float rows[kKeys][kPitch];              // of keys, values, queries or results
  float scores[kTileRows][kScores];       // then weights
  float diagonals[kWaves][kWaveRows][8];  // what each query's sums are multiplied by
};

// Elements first to first + 7 of a key or value.
template <class KV>
RB_DEVICE void read_run(const AttentionParams& p, const void* cache, const AttentionStrides& at,
                        const TileWork& work, i64 key, int first, RunWords<float>& to) {
  float values[kStagedRun];
  if constexpr (sizeof(KV) == 1) {
    const RunOf<KV> run = load_run<KV>(p, cache, at, work, key, first);
    float scale = 1.0f;
    if constexpr (SameType<KV, PageCode>::value) scale = to_float(run.scale);
#pragma unroll
    for (int i = 0; i < kStagedRun; ++i) values[i] = load_value(element<KV>(run.words, i)) * scale;
  } else {
    const i64 from = key_offset(p, at, work.span, work.kv_head, key) + first;
    RunWords<KV> run;
    run.load(static_cast<const KV*>(cache) + from);
#pragma unroll
    for (int i = 0; i < kStagedRun; ++i) values[i] = load_value(element<KV>(run.words, i));
  }
  set_run(to, values);
}

// kDim: the most elements of a head.
template <class KV, int kDim>
class SimdgroupAttention {
 public:
  RB_DEVICE SimdgroupAttention(const AttentionParams& p, const TileWork& work,
                               SimdgroupShared& shared)
      : p_(p),
        work_(work),
        shared_(shared),
        rule_(score_rule(p)),
        wave_(static_cast<int>(thread_x()) / kLanes),
        lane_(static_cast<int>(thread_x()) % kLanes) {}

  RB_DEVICE void run() {
    start();
    const i64 first = visible_keys(p_, work_.span, work_.first).first;
    const i64 end = last_end(p_, work_);
    for (i64 key = first; key < end; key += kKeys) {
      multiply_keys(key, end);
      weigh(key, end);
      add_values(key, end);
    }
    write();
  }

 private:
  static constexpr int kChunks = kDim / kChunk;
  static constexpr int kMatrices = kChunk / 8;  // in a chunk's row
  static constexpr int kSteps = kKeys / 8;

  RB_DEVICE int row() const { return wave_ * kWaveRows + lane_ / kOfRow; }
  RB_DEVICE const float* diagonal() const { return &shared_.diagonals[wave_][0][0]; }

  // The wave's queries as matrices, sums of 0.
  RB_DEVICE void start() {
    for (int i = lane_; i < kWaveRows * 8; i += kLanes) shared_.diagonals[wave_][i / 8][i % 8] = 0;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      barrier();
      for (int i = static_cast<int>(thread_x()); i < kTileRows * kChunk; i += kThreads) {
        const int r = i / kChunk, d = chunk * kChunk + i % kChunk;
        float q = 0;
        if (r < work_.count && d < p_.head_dim) {
          const i64 from = query_offset(p_.q_at, work_.span, work_.head, work_.first + r);
          q = load_number<float>(p_.q, p_.q_type, from + d * p_.q_at.step);
        }
        shared_.rows[r][i % kChunk] = q;
      }
      barrier();
#pragma unroll
      for (int i = 0; i < kMatrices; ++i) {
        const int at = chunk * kMatrices + i;
        queries_[at] = load_matrix(&shared_.rows[wave_ * kWaveRows][8 * i], kPitch);
        sums_[at] = rb_metal_matrix_zero();
      }
    }
  }

  // Rows of keys or values; 0 beyond their ends.
  RB_DEVICE void stage(const void* cache, const AttentionStrides& at, i64 key, i64 end, int chunk,
                       int dim) {
    constexpr int kRuns = kChunk / kStagedRun;
    barrier();
#pragma unroll
    for (int first = 0; first < kKeys * kRuns; first += kThreads) {
      const int run = first + static_cast<int>(thread_x());
      const int r = run / kRuns, d = run % kRuns * kStagedRun;
      RunWords<float> words;
      words.clear();
      if (key + r < end && chunk * kChunk + d < dim) {
        read_run<KV>(p_, cache, at, work_, key + r, chunk * kChunk + d, words);
      }
      words.store(&shared_.rows[r][d]);
    }
    barrier();
  }

  // Products of the wave's queries with keys, in shared memory.
  RB_DEVICE void multiply_keys(i64 key, i64 end) {
    FloatMatrix products[kSteps];
#pragma unroll
    for (int j = 0; j < kSteps; ++j) products[j] = rb_metal_matrix_zero();
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      stage(p_.k, p_.k_at, key, end, chunk, p_.head_dim);
#pragma unroll
      for (int i = 0; i < kMatrices; ++i) {
#pragma unroll
        for (int j = 0; j < kSteps; ++j) {
          const FloatMatrix keys = load_transposed(&shared_.rows[8 * j][8 * i], kPitch);
          products[j] = multiply_add(queries_[chunk * kMatrices + i], keys, products[j]);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      rb_metal_matrix_store(products[j], &shared_.scores[wave_ * kWaveRows][8 * j], kScores);
    }
    wave_barrier();
  }

  // Turns the lane's products into weights relative to its query's new top.
  RB_DEVICE void weigh(i64 key, i64 end) {
    const i64 query = work_.first + row();
    KeyRange seen{0, 0};
    if (row() < work_.count) seen = seen_keys(p_, work_.span, query);
    float* const own = &shared_.scores[row()][lane_ % kOfRow];
    float scores[kOfLane];
    float top = top_;
#pragma unroll
    for (int j = 0; j < kOfLane; ++j) {
      const i64 at = key + lane_ % kOfRow + kOfRow * j;
      const bool visible = at >= seen.first && at < seen.end && at < end;
      scores[j] = -infinity();
      if (visible) {
        const float product = own[kOfRow * j];
        scores[j] =
            rule_.shaped ? shaped_score(p_, work_, query, at, product) : product * rule_.factor;
      }
      top = scores[j] > top ? scores[j] : top;
    }
    top = wave_max<kLanes, kOfRow>(top);
    // Queries without a number so far: weights are 2^-inf = 0.
    const float level = top > -infinity() ? top : 0.0f;
    const float keep = fast_exp2(top_ - level);
    top_ = top;
    sum_ *= keep;
#pragma unroll
    for (int j = 0; j < kOfLane; ++j) {
      const float weight = fast_exp2(scores[j] - level);
      sum_ += weight;
      own[kOfRow * j] = weight;
    }
    set_diagonal(keep);
  }

  RB_DEVICE void set_diagonal(float value) {
    const int r = lane_ / kOfRow;
    if (lane_ % kOfRow == 0) shared_.diagonals[wave_][r][r] = value;
    wave_barrier();
  }

  RB_DEVICE void add_values(i64 key, i64 end) {
    const FloatMatrix keep = load_matrix(diagonal(), 8);
    FloatMatrix weights[kSteps];
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      weights[j] = load_matrix(&shared_.scores[wave_ * kWaveRows][8 * j], kScores);
    }
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      stage(p_.v, p_.v_at, key, end, chunk, p_.v_dim);
#pragma unroll
      for (int i = 0; i < kMatrices; ++i) {
        const int at = chunk * kMatrices + i;
        FloatMatrix sum = multiply_add(keep, sums_[at], rb_metal_matrix_zero());
#pragma unroll
        for (int j = 0; j < kSteps; ++j) {
          const FloatMatrix values = load_matrix(&shared_.rows[8 * j][8 * i], kPitch);
          sum = multiply_add(weights[j], values, sum);
        }
        sums_[at] = sum;
      }
    }
  }

  RB_DEVICE void write() {
    // Queries that see no key stay zeros.
    const float sum = with_sink(p_, work_.head, wave_sum<kLanes, kOfRow>(sum_), top_);
    set_diagonal(sum == 0 ? 0.0f : 1.0f / sum);
    const FloatMatrix scale = load_matrix(diagonal(), 8);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      barrier();
#pragma unroll
      for (int i = 0; i < kMatrices; ++i) {
        const FloatMatrix result =
            multiply_add(scale, sums_[chunk * kMatrices + i], rb_metal_matrix_zero());
        rb_metal_matrix_store(result, &shared_.rows[wave_ * kWaveRows][8 * i], kPitch);
      }
      barrier();
      for (int i = static_cast<int>(thread_x()); i < kTileRows * kChunk; i += kThreads) {
        const int r = i / kChunk, d = chunk * kChunk + i % kChunk;
        if (r >= work_.count || d >= p_.v_dim) continue;
        const i64 to = query_offset(p_.y_at, work_.span, work_.head, work_.first + r);
        store_number<float>(p_.y, p_.q_type, to + d * p_.y_at.step, shared_.rows[r][i % kChunk]);
      }
    }
  }

  const AttentionParams& p_;
  const TileWork& work_;
  SimdgroupShared& shared_;
  const ScoreRule rule_;
  const int wave_, lane_;
  FloatMatrix queries_[kDim / 8], sums_[kDim / 8];
  float top_ = -infinity(), sum_ = 0;  // of the lane's query; the sum over the lane's keys
};

template <class KV, int kDim>
RB_DEVICE void attention_simdgroup(const AttentionParams& p) {
  RB_SHARED SimdgroupShared shared;
  TileWork work;
  if (!find_tile(p, kTileRows, work)) return;
  SimdgroupAttention<KV, kDim>(p, work, shared).run();
}

#define RB_ATTENTION_DIM(dtype, KV, dim)                                     \
  RB_KERNEL(attention_simdgroup_##dtype##_d##dim, kThreads, AttentionParams, \
            (attention_simdgroup<KV, dim>(p)))
#define RB_ATTENTION(dtype, KV)    \
  RB_ATTENTION_DIM(dtype, KV, 64)  \
  RB_ATTENTION_DIM(dtype, KV, 128) \
  RB_ATTENTION_DIM(dtype, KV, 256)
RB_ATTENTION(f32, float)
RB_ATTENTION(f16, f16)
RB_ATTENTION(bf16, bf16)
RB_ATTENTION(f8e4m3, f8e4m3)
RB_ATTENTION(q8_0, PageCode)

}  // namespace gpu
}  // namespace rbee
