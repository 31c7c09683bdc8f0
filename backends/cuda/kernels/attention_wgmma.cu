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
template <class T, int kDim>
class WgmmaProducer {
 public:
  using Shared = WgmmaShared<kDim>;

  RB_DEVICE WgmmaProducer(const AttentionParams& p, const TileWork& work, Shared& shared)
      : p_(p), work_(work), shared_(shared), thread_(static_cast<int>(thread_x()) % kGroup) {}

  RB_DEVICE void run(const TileKeys& keys) {
    u64* pending = nullptr;
    int stage = 0;
    u32 parity = 1;  // a barrier's phase before the first counts as over
    for (i64 key = keys.first; key < keys.end; key += kKeys) {
      wait_phase(&shared_.k_empty[stage], parity);
      copy_rows(shared_.k[stage], p_.k, p_.k_at, p_.head_dim, key, keys.end);
      hand_over(pending, &shared_.k_full[stage]);
      wait_phase(&shared_.v_empty[stage], parity);
      copy_rows(shared_.v[stage], p_.v, p_.v_at, p_.v_dim, key, keys.end);
      hand_over(pending, &shared_.v_full[stage]);
      stage = (stage + 1) % kStages;
      if (stage == 0) parity ^= 1;
    }
    wait_copies<0>();
    publish_to_products();
    if (pending != nullptr) arrive(pending);
  }

 private:
  // Ends this tile's group of copies and signals the group before, which had time to arrive.
  RB_DEVICE static void hand_over(u64*& pending, u64* full) {
    commit_copies();
    if (pending != nullptr) {
      wait_copies<1>();
      publish_to_products();
      arrive(pending);
    }
    pending = full;
  }

  // Rows [first, first + kKeys) of keys or values; zeros from `end` on and beyond `dim`.
  RB_DEVICE void copy_rows(unsigned char* to, const void* base, const AttentionStrides& at, int dim,
                           i64 first, i64 end) const {
    const int part = thread_ % Shared::kParts;
    const u32 start = shared_address(to);
#pragma unroll 4
    for (int row = thread_ / Shared::kParts; row < kKeys; row += kGroup / Shared::kParts) {
      const bool wanted = first + row < end && part * 8 < dim;
      const i64 key = first + row < end ? first + row : end - 1;
      const T* from = static_cast<const T*>(base) +
                      key_offset(p_, at, work_.span, work_.kv_head, key) + (wanted ? part * 8 : 0);
      copy_async16(start + swizzled(kKeys, row, part), from, wanted ? 16 : 0);
    }
  }

  const AttentionParams& p_;
  const TileWork& work_;
  Shared& shared_;
  int thread_;
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
        thread_(static_cast<int>(thread_x()) % kGroup) {
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
    wait_phase(&shared_.k_full[0], 0);
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
      wait_phase(&shared_.k_full[stage], parity);
      await_turn();
      start_scores(scores, stage);
      wait_phase(&shared_.v_full[before], before_parity);
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
    wait_phase(&shared_.v_full[stage], parity);
    start_values(weights, stage);
    warpgroup_wait<0>();
    pin(out_);
  }

  RB_DEVICE void await_turn() const { named_wait(kTurn + group_, kConsumers * kGroup); }
  RB_DEVICE void pass_turn() const { named_arrive(kTurn + 1 - group_, kConsumers * kGroup); }

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
    const u32 q = shared_address(shared_.q[group_]);
    const u32 k = shared_address(shared_.k[stage]);
    pin(scores);
    warpgroup_begin();
#pragma unroll
    for (int d = 0; d < kDim; d += 16) {
      const u32 tile = static_cast<u32>(d) / 64;
      const u32 within = static_cast<u32>(d) % 64 * 2;
      multiply_rows<T>(scores,
                       matrix_descriptor(q + tile * kGroupRows * kSwizzleRow + within, 16, 1024),
                       matrix_descriptor(k + tile * kKeys * kSwizzleRow + within, 16, 1024), d > 0);
    }
    warpgroup_commit();
  }

  // Along the sum, 16 values are 16 rows.
  RB_DEVICE void start_values(const u32 (&weights)[kKeys / 16][4], int stage) {
    const u32 v = shared_address(shared_.v[stage]);
    pin(out_);
    warpgroup_begin();
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      multiply_columns<T>(
          out_, weights[key / 16],
          matrix_descriptor(v + static_cast<u32>(key) * kSwizzleRow, kKeys * kSwizzleRow, 1024));
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
      float top = top_[half];
#pragma unroll
      for (int i = 2 * half; i < kKeys / 2; i += 4) {
        top = Max{}(top, Max{}(scores[i], scores[i + 1]));
      }
      top = wave_max<32, 4>(top);
      // Rows that saw no key yet: weights are 2^-inf = 0, and there is nothing to rescale.
      const float base = top > -infinity() ? top * factor_ : 0.0f;
      keep[half] = fast_exp2(top_[half] * factor_ - base);
      float sum = 0;
#pragma unroll
      for (int i = 2 * half; i < kKeys / 2; i += 4) {
        scores[i] = fast_exp2(scores[i] * factor_ - base);
        scores[i + 1] = fast_exp2(scores[i + 1] * factor_ - base);
        sum += scores[i] + scores[i + 1];
      }
      top_[half] = top;
      sum_[half] = sum_[half] * keep[half] + sum;
    }
  }

  RB_DEVICE void hide(i64 key, float (&scores)[kKeys / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const KeyRange seen = visible_keys(p_, work_.span, work_.first + row_of(half));
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
      const float sum = wave_sum<32, 4>(sum_[half]);
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
  if (!find_tile(p, kRows, block_x(), block_y(), work)) return;
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
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    WgmmaProducer<T, kDim>(p, work, shared).run(keys);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
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
