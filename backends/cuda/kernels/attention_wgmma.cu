// Attention of many queries on Hopper (sm_90a), dense and paged, after FlashAttention-3 (Shah et
// al. 2024): a warpgroup that only fetches keys and values, and two that each own 64 queries. A
// consumer starts the products of the next keys before it adds the values of the present ones, so
// that its softmax runs beside tensor cores at work; the two take turns at starting products, so
// that one's softmax runs beside the other's products. Exponentials and tensor cores limit it
// alike. Rows are fetched by cp.async, which serves paged caches as well as dense tensors.
#include "backends/cuda/kernels/attention_wgmma.h"
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_softmax.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kGroup = 128;     // threads of a warpgroup
constexpr int kConsumers = 2;   // warpgroups
constexpr int kGroupRows = 64;  // queries of a consumer
constexpr int kRows = kConsumers * kGroupRows;
constexpr int kKeys = 128;
constexpr int kStages = 2;
constexpr int kConsumerWarps = kConsumers * 4;
// Named barriers: one for each consumer's turn, one for each consumer's own threads.
constexpr int kTurn = 1;
constexpr int kOwn = kTurn + kConsumers;

template <int kDim>
struct WgmmaShared {
  static constexpr int kParts = kDim / 8;  // of 16 bytes, in a row
  static constexpr int kTileBytes = kKeys * kDim * 2;
  static constexpr int kGroupBytes = kGroupRows * kDim * 2;
  alignas(1024) unsigned char q[kConsumers][kGroupBytes];
  alignas(1024) unsigned char k[kStages][kTileBytes];
  alignas(1024) unsigned char v[kStages][kTileBytes];
  u64 k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

// Fetches tiles in the order in which they are used: keys and values of one tile, then the next.
// Instructions are what limits it, so that a lane works out where one row lies, for all lanes.
template <class T, int kDim>
class WgmmaProducer {
 public:
  using Shared = WgmmaShared<kDim>;
  static constexpr int kAtOnce = 32 / Shared::kParts;  // rows that a warp copies at once
  static constexpr int kStep = kAtOnce * kGroup / 32;  // rows that the warpgroup copies at once
  static constexpr int kBatch = 8;                     // shuffles that wait for each other
  static_assert(kStep % 8 == 0, "the swizzle of a lane's rows differs");

  RB_DEVICE WgmmaProducer(const AttentionParams& p, const TileWork& work, Shared& shared)
      : p_(p),
        work_(work),
        shared_(shared),
        warp_(static_cast<int>(thread_x()) % kGroup / 32),
        lane_(static_cast<int>(thread_x()) % 32) {}

  RB_DEVICE void run(const TileKeys& keys) {
    int stage = 0;
    u32 parity = 1;  // a barrier's phase before the first counts as over
    for (i64 key = keys.first; key < keys.end; key += kKeys) {
      const int rows = keys.end - key < kKeys ? static_cast<int>(keys.end - key) : kKeys;
      const int row = warp_ * kAtOnce + lane_ % kAtOnce + lane_ / kAtOnce * kStep;
      const i64 last = row < rows ? key + row : keys.end - 1;
      const u32 k_place = place(p_.k_at, last);
      const u32 v_place = place(p_.v_at, last);
      wait_phase(&shared_.k_empty[stage], parity);
      copy_rows(shared_.k[stage], p_.k, k_place, p_.head_dim, rows);
      arrive_after_copies(&shared_.k_full[stage]);
      wait_phase(&shared_.v_empty[stage], parity);
      copy_rows(shared_.v[stage], p_.v, v_place, p_.v_dim, rows);
      arrive_after_copies(&shared_.v_full[stage]);
      stage = (stage + 1) % kStages;
      if (stage == 0) parity ^= 1;
    }
    wait_copies<0>();
  }

 private:
  // Of a row, in parts of 16 bytes: of tensors below 64 GiB.
  RB_DEVICE u32 place(const AttentionStrides& at, i64 key) const {
    return static_cast<u32>(key_offset(p_, at, work_.span, work_.kv_head, key) / 8);
  }

  // A tile of which `rows` rows are there; zeros in the others and beyond `dim`.
  RB_DEVICE void copy_rows(unsigned char* to, const void* base, u32 place, int dim,
                           int rows) const {
    const int part = lane_ % Shared::kParts;
    const int row = warp_ * kAtOnce + lane_ / Shared::kParts;
    const u32 start = shared_address(to) + swizzled(kKeys, row, part);
    const bool inside = part * 8 < dim;
    const char* from = static_cast<const char*>(base) + (inside ? part * 16 : 0);
    const int here = inside ? rows - row : 0;
#pragma unroll
    for (int i = 0; i < kKeys / kStep; i += kBatch) {
      u32 places[kBatch];  // of this lane's rows, from the lanes that know them
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        places[j] = shuffle<32>(place, (i + j) * kAtOnce + lane_ / Shared::kParts);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        copy_async16(start + static_cast<u32>((i + j) * kStep * kSwizzleRow),
                     from + static_cast<u64>(places[j]) * 16, (i + j) * kStep < here ? 16 : 0);
      }
    }
  }

  const AttentionParams& p_;
  const TileWork& work_;
  Shared& shared_;
  const int warp_, lane_;
};

// A warpgroup with 64 queries. A lane holds rows g and g + 8 of its warp's 16, g = lane / 4, and of
// each eight columns 2t and 2t + 1, t = lane % 4.
template <class T, int kDim>
class WgmmaConsumer {
 public:
  using Shared = WgmmaShared<kDim>;

  RB_DEVICE WgmmaConsumer(const AttentionParams& p, const TileWork& work, Shared& shared, int group)
      : p_(p),
        work_(work),
        shared_(shared),
        factor_(p.scale * kLog2E),
        group_(group),
        thread_(static_cast<int>(thread_x()) % kGroup),
        q_(matrix_descriptor(shared_address(shared.q[group]), 16, 1024)),
        k_(shared_address(shared.k)),
        v_(shared_address(shared.v)) {
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) out_[i] = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      top_[half] = -infinity();
      sum_[half] = 0;
    }
  }

  RB_DEVICE void run(const TileKeys& keys) {
    load_queries();
    if (group_ == 1) named_arrive(kTurn, kConsumers * kGroup);  // the first turn is group 0's
    if (keys.first < keys.end) consume(keys);
    write();
  }

 private:
  RB_DEVICE void consume(const TileKeys& keys) {
    float scores[kKeys / 2];
    u32 weights[kKeys / 16][4];
    float keep[2];
    int stage = 0;
    u32 parity = 0;
    wait_copied(&shared_.k_full[0], 0);
    await_turn();
    start_scores(scores, 0);
    pass_turn();
    warpgroup_wait<0>();
    pin(scores);
    release(&shared_.k_empty[0]);
    weigh(keys, keys.first, scores, keep);
    round(scores, weights);
    for (i64 key = keys.first + kKeys; key < keys.end; key += kKeys) {
      const int before = stage;
      const u32 before_parity = parity;
      stage = (stage + 1) % kStages;
      if (stage == 0) parity ^= 1;
      wait_copied(&shared_.k_full[stage], parity);
      await_turn();
      start_scores(scores, stage);
      wait_copied(&shared_.v_full[before], before_parity);
      start_values(weights, before);
      pass_turn();
      warpgroup_wait<1>();
      pin(scores);
      release(&shared_.k_empty[stage]);
      weigh(keys, key, scores, keep);
      warpgroup_wait<0>();
      pin(out_);
      release(&shared_.v_empty[before]);
      rescale(keep);
      round(scores, weights);
    }
    wait_copied(&shared_.v_full[stage], parity);
    start_values(weights, stage);
    warpgroup_wait<0>();
    pin(out_);
  }

  RB_DEVICE void await_turn() const { named_wait(kTurn + group_, kConsumers * kGroup); }
  RB_DEVICE void pass_turn() const { named_arrive(kTurn + 1 - group_, kConsumers * kGroup); }

  // Copies end without their threads, so that their readers show them to the products.
  RB_DEVICE static void wait_copied(u64* full, u32 parity) {
    wait_phase(full, parity);
    publish_to_products();
  }

  // Every warp says that it is done with a stage.
  RB_DEVICE void release(u64* empty) const {
    if (thread_ % 32 == 0) arrive(empty);
  }

  RB_DEVICE int row_of(int half) const {
    return group_ * kGroupRows + thread_ / 32 * 16 + half * 8 + thread_ % 32 / 4;
  }

  RB_DEVICE void load_queries() const {
    unsigned char* to = shared_.q[group_];
    for (int i = thread_; i < kGroupRows * Shared::kParts; i += kGroup) {
      const int row = i / Shared::kParts;
      const int part = i % Shared::kParts;
      const i64 query = group_ * kGroupRows + row;
      Pack<T> pack{};
      if (query < work_.count && part * 8 < p_.head_dim) {
        pack = load_query<T>(
            p_, query_offset(p_.q_at, work_.span, work_.head, work_.first + query) + part * 8);
      }
      store128(reinterpret_cast<T*>(to + swizzled(kGroupRows, row, part)), pack);
    }
    publish_to_products();
    named_wait(kOwn + group_, kGroup);
  }

  // Along the sum, 16 elements are 32 bytes of a swizzled row.
  RB_DEVICE void start_scores(float (&scores)[kKeys / 2], int stage) const {
    const u64 k = matrix_descriptor(k_ + static_cast<u32>(stage * Shared::kTileBytes), 16, 1024);
    pin(scores);
    warpgroup_begin();
#pragma unroll
    for (int d = 0; d < kDim; d += 16) {
      const int within = d % 64 * 2;
      multiply_rows<T>(scores, q_ + (d / 64 * kGroupRows * kSwizzleRow + within) / 16,
                       k + (d / 64 * kKeys * kSwizzleRow + within) / 16, d > 0);
    }
    warpgroup_commit();
  }

  // Along the sum, 16 values are 16 rows.
  RB_DEVICE void start_values(const u32 (&weights)[kKeys / 16][4], int stage) {
    const u64 v = matrix_descriptor(v_ + static_cast<u32>(stage * Shared::kTileBytes),
                                    kKeys * kSwizzleRow, 1024);
    pin(out_);
    warpgroup_begin();
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      multiply_columns<T>(out_, weights[key / 16], v + key * kSwizzleRow / 16);
    }
    warpgroup_commit();
  }

  // Turns products into weights relative to the rows' new tops; `keep` is what earlier sums are
  // to be scaled by.
  RB_DEVICE void weigh(const TileKeys& keys, i64 key, float (&scores)[kKeys / 2],
                       float (&keep)[2]) {
    if (key < keys.all_first || key + kKeys > keys.all_end) hide(key, scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float top = row_max(MaxNumber{}(top_[half], lane_top(scores, half)));
      // Rows that saw no key yet: weights are 2^-inf = 0, and there is nothing to rescale.
      const float base = top > -infinity() ? top * factor_ : 0.0f;
      keep[half] = fast_exp2(top_[half] * factor_ - base);
      float sums[2] = {};
#pragma unroll
      for (int i = 2 * half; i < kKeys / 2; i += 4) {
        scores[i] = fast_exp2(scores[i] * factor_ - base);
        scores[i + 1] = fast_exp2(scores[i + 1] * factor_ - base);
        sums[0] += scores[i];
        sums[1] += scores[i + 1];
      }
      top_[half] = top;
      sum_[half] = sum_[half] * keep[half] + (sums[0] + sums[1]);
    }
  }

  // The largest of this lane's scores of a row. Four chains: one would wait for each comparison.
  RB_DEVICE static float lane_top(const float (&scores)[kKeys / 2], int half) {
    float tops[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) tops[i] = scores[i / 2 * 4 + 2 * half + i % 2];
#pragma unroll
    for (int i = 4; i < kKeys / 4; ++i) {
      tops[i % 4] = MaxNumber{}(tops[i % 4], scores[i / 2 * 4 + 2 * half + i % 2]);
    }
    return MaxNumber{}(MaxNumber{}(tops[0], tops[1]), MaxNumber{}(tops[2], tops[3]));
  }

  RB_DEVICE void hide(i64 key, float (&scores)[kKeys / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const KeyRange seen = seen_keys(p_, work_.span, work_.first + row_of(half));
      // From this lane's first key on; clamped to the tile.
      const i64 lane_key = key + thread_ % 4 * 2;
      const int first = clamp_to_tile(seen.first - lane_key);
      const int end = clamp_to_tile(seen.end - lane_key);
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) {
        const int at = i / 2 * 8 + i % 2;
        if (at < first || at >= end) scores[i / 2 * 4 + 2 * half + i % 2] = -infinity();
      }
    }
  }
  RB_DEVICE static int clamp_to_tile(i64 x) {
    return x < 0 ? 0 : x > kKeys ? kKeys : static_cast<int>(x);
  }

  // The products' fragments are, rounded, those of a left operand.
  RB_DEVICE static void round(const float (&scores)[kKeys / 2], u32 (&weights)[kKeys / 16][4]) {
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        weights[i][j] = pack_pair<T>(scores[i * 8 + 2 * j], scores[i * 8 + 2 * j + 1]);
      }
    }
  }

  RB_DEVICE void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < kDim / 2; i += 4) {
      out_[i] *= keep[0];
      out_[i + 1] *= keep[0];
      out_[i + 2] *= keep[1];
      out_[i + 3] *= keep[1];
    }
  }

  RB_DEVICE void write() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum =
          with_sink(p_, work_.head, wave_sum<32, 4>(sum_[half]), top_[half] * factor_);
      const float scale = sum > 0 ? 1.0f / sum : 0.0f;
      const int row = row_of(half);
      if (row >= work_.count) continue;
      const i64 to = query_offset(p_.y_at, work_.span, work_.head, work_.first + row);
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        const int column = i * 8 + thread_ % 4 * 2;
        if (column >= p_.v_dim) continue;
        store_result<T>(p_, to + column, out_[i * 4 + 2 * half] * scale,
                        out_[i * 4 + 2 * half + 1] * scale);
      }
    }
  }

  const AttentionParams& p_;
  const TileWork& work_;
  Shared& shared_;
  const float factor_;
  const int group_;
  const int thread_;
  const u64 q_;      // descriptor of the queries
  const u32 k_, v_;  // first stages
  float out_[kDim / 2];
  float top_[2], sum_[2];  // of rows g and g + 8; sums of this lane's columns
};

template <class T, int kDim>
RB_DEVICE void attention_wgmma(const AttentionParams& p) {
  using Shared = WgmmaShared<kDim>;
  extern __shared__ unsigned char dynamic[];
  // The launch asks for 1024 bytes more than the structure has.
  const u32 address = shared_address(dynamic);
  Shared& shared = *reinterpret_cast<Shared*>(dynamic + ((address + 1023) / 1024 * 1024 - address));
  TileWork work;
  if (!find_tile(p, kRows, work)) return;
  if (thread_x() == 0) {
    for (int i = 0; i < kStages; ++i) {
      start_barrier(&shared.k_full[i], kGroup);
      start_barrier(&shared.v_full[i], kGroup);
      start_barrier(&shared.k_empty[i], kConsumerWarps);
      start_barrier(&shared.v_empty[i], kConsumerWarps);
    }
  }
  barrier();
  const TileKeys keys = tile_keys(p, work);
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<40>();
    WgmmaProducer<T, kDim>(p, work, shared).run(keys);
  } else {
    grow_registers<232>();
    WgmmaConsumer<T, kDim>(p, work, shared, group - 1).run(keys);
  }
}

// attention_wgmma_<dtype>_d<largest head>. One block on a multiprocessor: its bound on registers is
// what the warpgroups share out anew.
#define RB_WGMMA(dtype, T, dim)                                                     \
  extern "C" __global__ void __launch_bounds__((kConsumers + 1) * kGroup, 1)        \
      attention_wgmma_##dtype##_d##dim(const __grid_constant__ AttentionParams p) { \
    wait_for_previous_kernel();                                                     \
    attention_wgmma<T, dim>(p);                                                     \
  }
RB_WGMMA(f16, f16, 64)
RB_WGMMA(f16, f16, 128)
RB_WGMMA(bf16, bf16, 64)
RB_WGMMA(bf16, bf16, 128)

}  // namespace gpu
}  // namespace rbee

#endif
