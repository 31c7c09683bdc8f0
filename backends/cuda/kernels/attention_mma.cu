// Attention of many queries by mma.sync (sm_80 and later), dense and paged: FlashAttention-2 (Dao
// 2023). A block of four warps has a tile of queries of one head and goes through the keys 64 at a
// time; a warp owns whole rows of the tile, so the softmax needs no shared memory. The block
// fetches keys while it multiplies the values of the tile before, and values while it multiplies
// keys. The tensor cores, and the shared memory that feeds them, limit it.
#include "backends/cuda/kernels/attention_in_out.h"
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_cache.h"
#include "backends/gpu/kernels/attention_softmax.h"

namespace rbee {
namespace gpu {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kKeys = 64;

// kDim: the head size, rounded up to one that has a kernel; elements beyond the head are zero.
template <int kDim>
struct MmaTile {
  static constexpr int kBands = kDim <= 128 ? 2 : 1;  // of 16 rows, a warp's
  static constexpr int kRows = kWarps * kBands * 16;
  // Rows are 16 bytes longer than needed: eight rows' parts at one column lie in different banks.
  static constexpr int kStride = kDim + 8;
  static constexpr int kChunks = kDim / 8;  // of 16 bytes, in a row
};

// A part of a warp's rows: a lane's share of 16 queries.
template <int kDim>
struct MmaBand {
  float out[kDim / 8][4];
  float top[2], sum[2];  // of rows g and g + 8; sums of this lane's columns
};

// T: the type of the products. KV: T too, or the 8-bit type of the keys and values, which the
// kernel converts to T on their way to shared memory.
template <class T, class KV, int kDim>
class MmaAttention {
 public:
  using Tile = MmaTile<kDim>;
  static constexpr bool kNarrow = !SameType<T, KV>::value;

  RB_DEVICE MmaAttention(const AttentionParams& p, const TileWork& work, T* shared)
      : p_(p),
        work_(work),
        rule_(score_rule(p)),
        q_(shared),
        k_(q_ + Tile::kRows * Tile::kStride),
        v_(k_ + kKeys * Tile::kStride),
        lane_(thread_x() % 32),
        warp_(thread_x() / 32) {}

  RB_DEVICE void run() {
    const TileKeys keys = tile_keys(p_, work_);
    load_queries();
    start_bands();
    if (keys.first < keys.end) copy_rows(k_, p_.k, p_.k_at, p_.head_dim, keys.first, keys.end);
    commit_copies();
    for (i64 key = keys.first; key < keys.end; key += kKeys) {
      wait_copies<0>();
      barrier();  // keys are here, and the values of the tile before are used up
      copy_rows(v_, p_.v, p_.v_at, p_.v_dim, key, keys.end);
      commit_copies();
      float scores[Tile::kBands][kKeys / 8][4];
      multiply_keys(scores);
      const bool partly = key < keys.all_first || key + kKeys > keys.all_end;
#pragma unroll
      for (int band = 0; band < Tile::kBands; ++band) weigh(band, key, partly, scores[band]);
      wait_copies<0>();
      barrier();  // values are here, and the keys are used up
      if (key + kKeys < keys.end) {
        copy_rows(k_, p_.k, p_.k_at, p_.head_dim, key + kKeys, keys.end);
      }
      commit_copies();
      multiply_values(scores);
    }
    write();
  }

 private:
  // The tile's row for this lane's half (0: g, 1: g + 8) of a band.
  RB_DEVICE int row_of(int band, int half) const {
    return (static_cast<int>(warp_) * Tile::kBands + band) * 16 + half * 8 +
           static_cast<int>(lane_) / 4;
  }

  RB_DEVICE void load_queries() {
    for (int i = static_cast<int>(thread_x()); i < Tile::kRows * Tile::kChunks; i += kThreads) {
      const int row = i / Tile::kChunks;
      const int at = i % Tile::kChunks * 8;
      Pack<T> pack{};
      if (row < work_.count && at < p_.head_dim) {
        const i64 from = query_offset(p_.q_at, work_.span, work_.head, work_.first + row) + at;
        pack = kNarrow ? load_any_query<T>(p_, from) : load_query<T>(p_, from);
      }
      store128(q_ + row * Tile::kStride + at, pack);
    }
  }

  RB_DEVICE void start_bands() {
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) bands_[band].out[i][j] = 0;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        bands_[band].top[half] = -infinity();
        bands_[band].sum[half] = 0;
      }
    }
  }

  static constexpr int kLanes = Tile::kChunks > 16 ? 32 : 16;  // threads that share a row
  static constexpr int kEach = kKeys * kLanes / kThreads;      // rows of a thread

  // Rows [first, first + 64) of keys or values; zeros from `end` on and beyond `dim`.
  RB_DEVICE void copy_rows(T* to, const void* base, const AttentionStrides& at, int dim, i64 first,
                           i64 end) const {
    if constexpr (kNarrow) return widen_rows(to, base, at, dim, first, end);
    const int chunk = static_cast<int>(thread_x()) % kLanes;
    if (chunk >= Tile::kChunks) return;
    for (int row = static_cast<int>(thread_x()) / kLanes; row < kKeys; row += kThreads / kLanes) {
      const bool wanted = first + row < end && chunk * 8 < dim;
      const i64 key = wanted ? first + row : end - 1;
      const T* from = static_cast<const T*>(base) +
                      key_offset(p_, at, work_.span, work_.kv_head, key) + (wanted ? chunk * 8 : 0);
      copy_async16(shared_address(to + row * Tile::kStride + chunk * 8), from, wanted ? 16 : 0);
    }
  }

  // The same for 8-bit elements; a thread starts all its loads before it writes.
  RB_DEVICE void widen_rows(T* to, const void* base, const AttentionStrides& at, int dim, i64 first,
                            i64 end) const {
    const int chunk = static_cast<int>(thread_x()) % kLanes;
    const int first_row = static_cast<int>(thread_x()) / kLanes;
    if (chunk >= Tile::kChunks) return;
    RunOf<KV> runs[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const i64 key = first + first_row + i * (kThreads / kLanes);
      runs[i] = load_run<KV>(p_, base, at, work_, key < end ? key : end - 1,
                             chunk * 8 < dim ? chunk * 8 : 0);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int row = first_row + i * (kThreads / kLanes);
      const bool wanted = first + row < end && chunk * 8 < dim;
      store128(to + row * Tile::kStride + chunk * 8, wanted ? widen<T, KV>(runs[i]) : Pack<T>{});
    }
  }

  // scores = the warp's queries times all keys of the tile.
  RB_DEVICE void multiply_keys(float (&scores)[Tile::kBands][kKeys / 8][4]) const {
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) scores[band][i][j] = 0;
      }
    }
    const T* q = q_ + (warp_ * Tile::kBands * 16 + lane_ % 16) * Tile::kStride + lane_ / 16 * 8;
    const T* k = k_ + (lane_ / 16 * 8 + lane_ % 8) * Tile::kStride + lane_ / 8 % 2 * 8;
#pragma unroll
    for (int d = 0; d < kDim; d += 16) {
      u32 a[Tile::kBands][4];
#pragma unroll
      for (int band = 0; band < Tile::kBands; ++band) {
        load_matrices(a[band], shared_address(q + band * 16 * Tile::kStride + d));
      }
#pragma unroll
      for (int key = 0; key < kKeys; key += 16) {
        u32 b[4];
        load_matrices(b, shared_address(k + key * Tile::kStride + d));
#pragma unroll
        for (int band = 0; band < Tile::kBands; ++band) {
          multiply_add<T>(scores[band][key / 8], a[band], b[0], b[1]);
          multiply_add<T>(scores[band][key / 8 + 1], a[band], b[2], b[3]);
        }
      }
    }
  }

  // Turns a band's products into weights relative to the rows' new tops.
  RB_DEVICE void weigh(int band, i64 key, bool partly, float (&scores)[kKeys / 8][4]) {
    if (rule_.shaped) shape(band, key, scores);
    if (partly) hide(band, key, scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = bands_[band].top[half];
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i) {
        top = MaxNumber{}(top, MaxNumber{}(scores[i][2 * half], scores[i][2 * half + 1]));
      }
      top = row_max(top);
      // Rows without a visible key so far: weights are 2^-inf = 0, and there is nothing to rescale.
      const float base = top > -infinity() ? top * rule_.factor : 0.0f;
      const float keep = fast_exp2(bands_[band].top[half] * rule_.factor - base);
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          scores[i][j] = fast_exp2(scores[i][j] * rule_.factor - base);
          sum += scores[i][j];
        }
      }
      bands_[band].top[half] = top;
      bands_[band].sum[half] = bands_[band].sum[half] * keep + sum;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        bands_[band].out[i][2 * half] *= keep;
        bands_[band].out[i][2 * half + 1] *= keep;
      }
    }
  }

  RB_DEVICE void shape(int band, i64 key, float (&scores)[kKeys / 8][4]) const {
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const i64 at = key + i * 8 + lane_ % 4 * 2 + j % 2;
        const int row = row_of(band, j / 2);
        // A mask has no elements past the last query and key.
        if (row >= work_.count || at >= work_.span.kv_len) continue;
        scores[i][j] = shaped_score(p_, work_, work_.first + row, at, scores[i][j]);
      }
    }
  }

  RB_DEVICE void hide(int band, i64 key, float (&scores)[kKeys / 8][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 query = work_.first + row_of(band, half);
      const KeyRange keys = seen_keys(p_, work_.span, query);
      // From this lane's first key on; clamped to the tile.
      const i64 lane_key = key + lane_ % 4 * 2;
      const int first = clamp_to_tile(keys.first - lane_key);
      const int end = clamp_to_tile(keys.end - lane_key);
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          if (i * 8 + j < first || i * 8 + j >= end) scores[i][2 * half + j] = -infinity();
        }
      }
    }
  }
  RB_DEVICE static int clamp_to_tile(i64 x) {
    return x < 0 ? 0 : x > kKeys ? kKeys : static_cast<int>(x);
  }

  // Adds weights times values. The products' fragments, rounded, are those of a left operand.
  RB_DEVICE void multiply_values(const float (&weights)[Tile::kBands][kKeys / 8][4]) {
    const T* v = v_ + (lane_ / 8 % 2 * 8 + lane_ % 8) * Tile::kStride + lane_ / 16 * 8;
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      u32 a[Tile::kBands][4];
#pragma unroll
      for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&w)[4] = weights[band][key / 8 + i / 2];
          a[band][i] = round_pair<T>(w[i % 2 * 2], w[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int d = 0; d < kDim; d += 16) {
        u32 b[4];
        load_matrices_transposed(b, shared_address(v + key * Tile::kStride + d));
#pragma unroll
        for (int band = 0; band < Tile::kBands; ++band) {
          multiply_add<T>(bands_[band].out[d / 8], a[band], b[0], b[1]);
          multiply_add<T>(bands_[band].out[d / 8 + 1], a[band], b[2], b[3]);
        }
      }
    }
  }

  RB_DEVICE void write() const {
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = with_sink(p_, work_.head, wave_sum<32, 4>(bands_[band].sum[half]),
                                    bands_[band].top[half] * rule_.factor);
        const float scale = sum == 0 ? 0.0f : 1.0f / sum;
        const int row = row_of(band, half);
        if (row >= work_.count) continue;
        const i64 to = query_offset(p_.y_at, work_.span, work_.head, work_.first + row);
#pragma unroll
        for (int i = 0; i < kDim / 8; ++i) {
          const int column = i * 8 + static_cast<int>(lane_) % 4 * 2;
          if (column >= p_.v_dim) continue;
          const float(&sums)[4] = bands_[band].out[i];
          const float pair[2] = {sums[2 * half] * scale, sums[2 * half + 1] * scale};
          if constexpr (kNarrow) {
            store_any_result<T>(p_, to + column, pair[0], pair[1]);
          } else {
            store_result<T>(p_, to + column, pair[0], pair[1]);
          }
        }
      }
    }
  }

  const AttentionParams& p_;
  const TileWork& work_;
  const ScoreRule rule_;
  T* q_;
  T* k_;
  T* v_;
  u32 lane_, warp_;
  MmaBand<kDim> bands_[Tile::kBands];
};

template <class T, class KV, int kDim>
RB_DEVICE void attention_mma(const AttentionParams& p) {
  extern __shared__ __align__(16) unsigned char shared[];
  TileWork work;
  if (!find_tile(p, MmaTile<kDim>::kRows, work)) return;
  MmaAttention<T, KV, kDim> attention(p, work, reinterpret_cast<T*>(shared));
  attention.run();
}

// attention_mma_<keys and values>_d<largest head>
#define RB_MMA(dtype, T, KV, dim)                                      \
  RB_KERNEL(attention_mma_##dtype##_d##dim, kThreads, AttentionParams, \
            (attention_mma<T, KV, dim>(p)))
#define RB_MMA_DIMS(dtype, T) \
  RB_MMA(dtype, T, T, 32)     \
  RB_MMA(dtype, T, T, 64)     \
  RB_MMA(dtype, T, T, 96)     \
  RB_MMA(dtype, T, T, 128)    \
  RB_MMA(dtype, T, T, 192)    \
  RB_MMA(dtype, T, T, 256)
RB_MMA_DIMS(f16, f16)
RB_MMA_DIMS(bf16, bf16)

#define RB_MMA_NARROW(dtype, KV) \
  RB_MMA(dtype, f16, KV, 64)     \
  RB_MMA(dtype, f16, KV, 128)    \
  RB_MMA(dtype, f16, KV, 256)
RB_MMA_NARROW(f8e4m3, f8e4m3)
RB_MMA_NARROW(q8_0, PageCode)

}  // namespace gpu
}  // namespace rbee
