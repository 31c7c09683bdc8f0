// Attention over heads of up to 576 elements that many query heads share, such as DeepSeek's
// latents, by mma.sync (sm_80 and later); prompts and single steps, over a paged cache.
//
// A block has 64 rows: the queries of a sequence times the heads that share a key head, so that
// all of them use each key that the block reads. A warp's registers cannot hold results of 576
// columns: for the scores eight warps share out rows and keys, for the values each has 72 columns
// of all rows. Weights pass from one to the other through shared memory. If rows are few, blocks
// share out the keys, and attention_join merges their parts.
#include "backends/cuda/kernels/attention_in_out.h"
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_cache.h"
#include "backends/gpu/kernels/attention_softmax.h"

namespace rbee {
namespace gpu {

// As in ops/attention_latent_mma.cc.
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kRows = 64;
constexpr int kKeys = 32;
constexpr int kDim = 576;

constexpr int kRowWarps = kRows / 16;             // that share out the rows of the scores
constexpr int kKeyWarps = kWarps / kRowWarps;     // and their keys
constexpr int kKeyTiles = kKeys / kKeyWarps / 8;  // of eight keys, a warp's
constexpr int kColumns = kDim / kWarps;           // of the result, a warp's
constexpr int kColumnTiles = kColumns / 8;
// Rows are 16 bytes longer than needed: eight rows' parts at one column lie in different banks.
constexpr int kStride = kDim + 8;
constexpr int kWeightStride = kKeys + 8;
constexpr int kChunks = kDim / 8;  // of 16 bytes, in a row
static_assert(kKeyTiles == 2, "a warp's scores are one product wide");

template <class T>
struct LatentShared {
  T q[kRows * kStride];
  T k[kKeys * kStride];
  T v[kKeys * kStride];
  T weights[kRows * kWeightStride];
  float tops[kKeyWarps][kRows];  // of this tile's scores; at the end the sums of weights
  float keep[kRows];             // factor of the results so far; at the end their level
};

// Rows [first, first + count) of a sequence's queries times the heads of a key head.
struct LatentWork {
  TileWork tile;  // their queries
  i64 first;
  int count, group;

  RB_DEVICE i64 query(int row) const { return (first + row) / group; }
  RB_DEVICE i32 head(int row) const {
    return tile.kv_head * group + static_cast<i32>((first + row) % group);
  }
};

// As find_tile(): tiles that see the most keys come first.
RB_DEVICE bool find_rows(const AttentionParams& p, LatentWork& work) {
  work.group = p.heads / p.kv_heads;
  work.tile.kv_head = static_cast<i32>(block_y());
  i64 index = block_x(), tiles = 0, seq = 0;
  for (; seq < p.batch; ++seq) {
    work.tile.span = paged_span(p, seq);
    tiles = (work.tile.span.q_len * work.group + kRows - 1) / kRows;
    if (index < tiles) break;
    index -= tiles;
  }
  if (seq == p.batch) return false;
  const i64 rows = work.tile.span.q_len * work.group;
  work.first = (tiles - 1 - index) * kRows;
  work.count = rows - work.first < kRows ? static_cast<int>(rows - work.first) : kRows;
  work.tile.first = work.query(0);
  work.tile.count = work.query(work.count - 1) - work.tile.first + 1;
  work.tile.head = work.head(0);
  return true;
}

// This block's part of the keys: an equal share in whole tiles.
RB_DEVICE void cut_keys(const AttentionParams& p, TileKeys& keys) {
  const i64 count = keys.end - keys.first;
  if (p.splits == 1 || count <= 0) return;
  const i64 share = ((count + p.splits - 1) / p.splits + kKeys - 1) / kKeys * kKeys;
  keys.first += block_z() * share;
  if (keys.first + share < keys.end) keys.end = keys.first + share;
}

// T: the type of the products. KV: T too, or the 8-bit type of the keys and values, which the
// kernel converts to T on their way to shared memory.
template <class T, class KV>
class LatentAttention {
 public:
  static constexpr bool kNarrow = !SameType<T, KV>::value;

  RB_DEVICE LatentAttention(const AttentionParams& p, const LatentWork& work,
                            LatentShared<T>& shared)
      : p_(p),
        work_(work),
        shared_(shared),
        rule_(score_rule(p)),
        lane_(static_cast<int>(thread_x()) % 32),
        warp_(static_cast<int>(thread_x()) / 32) {}

  RB_DEVICE void run() {
    TileKeys keys = tile_keys(p_, work_.tile);
    cut_keys(p_, keys);
    load_queries();
    if (keys.first < keys.end) copy_rows(shared_.k, p_.k, p_.k_at, p_.head_dim, keys.first, keys);
    commit_copies();
    for (i64 key = keys.first; key < keys.end; key += kKeys) {
      wait_copies<0>();
      barrier();  // keys are here, and the values of the tile before are used up
      copy_rows(shared_.v, p_.v, p_.v_at, p_.v_dim, key, keys);
      commit_copies();
      float scores[kKeyTiles][4] = {};
      multiply_keys(scores);
      treat(key, keys, scores);
      share_tops(scores);
      barrier();  // tops are here, and the keys are used up
      if (key + kKeys < keys.end) {
        copy_rows(shared_.k, p_.k, p_.k_at, p_.head_dim, key + kKeys, keys);
      }
      commit_copies();
      weigh(scores);
      wait_copies<1>();
      barrier();  // values and weights are here
      multiply_values();
    }
    finish();
  }

 private:
  // The tile's row for this lane's half (0: g, 1: g + 8) of the warp's scores.
  RB_DEVICE int row_of(int half) const { return warp_ % kRowWarps * 16 + half * 8 + lane_ / 4; }
  // Whether the tile ends before a band of 16 rows.
  RB_DEVICE bool empty(int band) const { return band * 16 >= work_.count; }
  RB_DEVICE int first_key() const { return warp_ / kRowWarps * (kKeys / kKeyWarps); }

  // Four threads a row.
  RB_DEVICE void load_queries() const {
    const int row = static_cast<int>(thread_x()) / 4;
    const bool there = row < work_.count;
    const i64 from = query_offset(p_.q_at, work_.tile.span, work_.head(there ? row : 0),
                                  work_.query(there ? row : 0));
    for (int chunk = static_cast<int>(thread_x()) % 4; chunk < kChunks; chunk += 4) {
      const int at = chunk * 8;
      Pack<T> pack{};
      if (there && at < p_.head_dim) {
        pack = kNarrow ? load_any_query<T>(p_, from + at) : load_query<T>(p_, from + at);
      }
      store128(shared_.q + row * kStride + at, pack);
    }
  }

  static constexpr int kLanes = kThreads / kKeys;  // threads that share a key
  static constexpr int kEach = kChunks / kLanes;   // chunks of a thread
  static_assert(kEach * kLanes == kChunks && kEach % 3 == 0, "threads share keys evenly");

  // Rows [first, first + kKeys) of keys or values; zeros from the end on and beyond `dim`.
  RB_DEVICE void copy_rows(T* to, const void* base, const AttentionStrides& at, int dim, i64 first,
                           const TileKeys& keys) const {
    const int row = static_cast<int>(thread_x()) / kLanes;
    const int chunk = static_cast<int>(thread_x()) % kLanes;
    const bool there = first + row < keys.end;
    const i64 key = there ? first + row : keys.end - 1;
    to += row * kStride;
    if constexpr (kNarrow) {
      widen_row(to, base, at, dim, key, there, chunk);
    } else {
      const T* from = static_cast<const T*>(base) +
                      key_offset(p_, at, work_.tile.span, work_.tile.kv_head, key);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int element = (chunk + i * kLanes) * 8;
        const bool wanted = there && element < dim;
        copy_async16(shared_address(to + element), from + (wanted ? element : 0), wanted ? 16 : 0);
      }
    }
  }

  // The same for 8-bit elements, three loads under way at a time.
  RB_DEVICE void widen_row(T* to, const void* base, const AttentionStrides& at, int dim, i64 key,
                           bool there, int chunk) const {
#pragma unroll
    for (int first = 0; first < kEach; first += 3) {
      RunOf<KV> runs[3];
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        const int element = (chunk + (first + i) * kLanes) * 8;
        runs[i] = load_run<KV>(p_, base, at, work_.tile, key, element < dim ? element : 0);
      }
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        const int element = (chunk + (first + i) * kLanes) * 8;
        const bool wanted = there && element < dim;
        store128(to + element, wanted ? widen<T, KV>(runs[i]) : Pack<T>{});
      }
    }
  }

  // scores = the warp's rows times its keys of the tile.
  RB_DEVICE void multiply_keys(float (&scores)[kKeyTiles][4]) const {
    if (empty(warp_ % kRowWarps)) return;
    const T* q = shared_.q + (warp_ % kRowWarps * 16 + lane_ % 16) * kStride + lane_ / 16 * 8;
    const T* k =
        shared_.k + (first_key() + lane_ / 16 * 8 + lane_ % 8) * kStride + lane_ / 8 % 2 * 8;
#pragma unroll
    for (int d = 0; d < kDim; d += 16) {
      u32 a[4], b[4];
      load_matrices(a, shared_address(q + d));
      load_matrices(b, shared_address(k + d));
      multiply_add<T>(scores[0], a, b[0], b[1]);
      multiply_add<T>(scores[1], a, b[2], b[3]);
    }
  }

  // Applies the scores' rule, and leaves none of keys that a row does not see.
  RB_DEVICE void treat(i64 tile, const TileKeys& keys, float (&scores)[kKeyTiles][4]) const {
    const bool partly =
        tile < keys.all_first || tile + kKeys > keys.all_end || tile + kKeys > keys.end;
    if (!rule_.shaped && !partly) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half) < work_.count ? row_of(half) : 0;
      const i64 query = work_.query(row);
      TileWork work = work_.tile;
      work.head = work_.head(row);
      const KeyRange seen = seen_keys(p_, work.span, query);
#pragma unroll
      for (int i = 0; i < kKeyTiles; ++i) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          const i64 key = tile + first_key() + i * 8 + lane_ % 4 * 2 + j % 2;
          if (key < seen.first || key >= seen.end || key >= keys.end) {
            scores[i][j] = -infinity();
          } else if (rule_.shaped) {
            scores[i][j] = shaped_score(p_, work, query, key, scores[i][j]);
          }
        }
      }
    }
  }

  RB_DEVICE void share_tops(const float (&scores)[kKeyTiles][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = -infinity();
#pragma unroll
      for (int i = 0; i < kKeyTiles; ++i) {
        top = MaxNumber{}(top, MaxNumber{}(scores[i][2 * half], scores[i][2 * half + 1]));
      }
      top = row_max(top);
      if (lane_ % 4 == 0) shared_.tops[warp_ / kRowWarps][row_of(half)] = top;
    }
  }

  // Weights relative to the rows' new tops, to shared memory.
  RB_DEVICE void weigh(const float (&scores)[kKeyTiles][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half);
      float top = tops_[half];
#pragma unroll
      for (int w = 0; w < kKeyWarps; ++w) top = MaxNumber{}(top, shared_.tops[w][row]);
      // Rows without a visible key so far: weights are 2^-inf = 0, and there is nothing to rescale.
      const float base = top > -infinity() ? top * rule_.factor : 0.0f;
      const float keep = fast_exp2(tops_[half] * rule_.factor - base);
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kKeyTiles; ++i) {
        const float first = fast_exp2(scores[i][2 * half] * rule_.factor - base);
        const float second = fast_exp2(scores[i][2 * half + 1] * rule_.factor - base);
        sum += first + second;
        const int at = row * kWeightStride + first_key() + i * 8 + lane_ % 4 * 2;
        *reinterpret_cast<u32*>(shared_.weights + at) = round_pair<T>(first, second);
      }
      if (warp_ < kRowWarps && lane_ % 4 == 0) shared_.keep[row] = keep;
      tops_[half] = top;
      sums_[half] = sums_[half] * keep + sum;
    }
  }

  // Adds all rows' weights times this warp's columns of the values.
  RB_DEVICE void multiply_values() {
    scale_results();
    const T* v =
        shared_.v + (lane_ / 8 % 2 * 8 + lane_ % 8) * kStride + lane_ / 16 * 8 + warp_ * kColumns;
    const T* weights = shared_.weights + lane_ % 16 * kWeightStride + lane_ / 16 * 8;
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      // The last eight columns come with eight of the next warp, or of the padding.
      u32 b[(kColumnTiles + 1) / 2][4];
#pragma unroll
      for (int i = 0; i < (kColumnTiles + 1) / 2; ++i) {
        load_matrices_transposed(b[i], shared_address(v + key * kStride + i * 16));
      }
#pragma unroll
      for (int band = 0; band < kRows / 16; ++band) {
        if (empty(band)) continue;
        u32 a[4];
        load_matrices(a, shared_address(weights + band * 16 * kWeightStride + key));
#pragma unroll
        for (int i = 0; i < kColumnTiles; ++i) {
          multiply_add<T>(out_[band][i], a, b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]);
        }
      }
    }
  }

  RB_DEVICE void scale_results() {
#pragma unroll
    for (int band = 0; band < kRows / 16; ++band) {
      const float low = shared_.keep[band * 16 + lane_ / 4];
      const float high = shared_.keep[band * 16 + 8 + lane_ / 4];
      if (!__any_sync(~0u, low != 1.0f || high != 1.0f)) continue;
#pragma unroll
      for (int i = 0; i < kColumnTiles; ++i) {
        out_[band][i][0] *= low;
        out_[band][i][1] *= low;
        out_[band][i][2] *= high;
        out_[band][i][3] *= high;
      }
    }
  }

  RB_DEVICE void finish() {
    wait_copies<0>();
    barrier();  // tops and levels of the last tile are used up
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = wave_sum<32, 4>(sums_[half]);
      if (lane_ % 4 != 0) continue;
      shared_.tops[warp_ / kRowWarps][row_of(half)] = sum;
      if (warp_ < kRowWarps) shared_.keep[row_of(half)] = tops_[half] * rule_.factor;
    }
    barrier();
#pragma unroll
    for (int band = 0; band < kRows / 16; ++band) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = band * 16 + half * 8 + lane_ / 4;
        if (row < work_.count) write(row, band, half);
      }
    }
  }

  RB_DEVICE void write(int row, int band, int half) const {
    const i64 query = work_.query(row);
    const i32 head = work_.head(row);
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kKeyWarps; ++w) sum += shared_.tops[w][row];
    if (p_.splits == 1) {
      sum = with_sink(p_, head, sum, shared_.keep[row]);
      const float scale = sum == 0 ? 0.0f : 1.0f / sum;
      const i64 to = query_offset(p_.y_at, work_.tile.span, head, query);
      each_pair(band, half, [&](int column, float first, float second) {
        if constexpr (kNarrow) {
          store_any_result<T>(p_, to + column, first * scale, second * scale);
        } else {
          store_result<T>(p_, to + column, first * scale, second * scale);
        }
      });
      return;
    }
    const i64 part =
        ((work_.tile.span.first_row + query) * p_.heads + head) * p_.splits + block_z();
    each_pair(band, half, [&](int column, float first, float second) {
      *reinterpret_cast<float2*>(p_.partial + part * p_.v_dim + column) = {first, second};
    });
    if (warp_ == 0 && lane_ % 4 == 0) {
      p_.partial_stats[2 * part] = shared_.keep[row];
      p_.partial_stats[2 * part + 1] = sum;
    }
  }

  // f(column, its result and the next one's)
  template <class F>
  RB_DEVICE void each_pair(int band, int half, F f) const {
#pragma unroll
    for (int i = 0; i < kColumnTiles; ++i) {
      const int column = warp_ * kColumns + i * 8 + lane_ % 4 * 2;
      if (column < p_.v_dim) f(column, out_[band][i][2 * half], out_[band][i][2 * half + 1]);
    }
  }

  const AttentionParams& p_;
  const LatentWork& work_;
  LatentShared<T>& shared_;
  const ScoreRule rule_;
  int lane_, warp_;
  float out_[kRows / 16][kColumnTiles][4] = {};
  float tops_[2] = {-infinity(), -infinity()};
  float sums_[2] = {0, 0};  // of this lane's keys
};

template <class T, class KV>
RB_DEVICE void attention_latent(const AttentionParams& p) {
  RB_DYNAMIC_SHARED(memory);
  LatentWork work;
  if (!find_rows(p, work)) return;
  LatentAttention<T, KV> attention(p, work, *reinterpret_cast<LatentShared<T>*>(memory));
  attention.run();
}

#define RB_LATENT(dtype, T, KV)                                            \
  RB_KERNEL_OF(attention_latent_mma_##dtype, kThreads, 1, AttentionParams, \
               (attention_latent<T, KV>(p)))
RB_LATENT(f16, f16, f16)
RB_LATENT(bf16, bf16, bf16)
RB_LATENT(f8e4m3, f16, f8e4m3)
RB_LATENT(q8_0, f16, PageCode)

}  // namespace gpu
}  // namespace rbee
