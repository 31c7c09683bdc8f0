#pragma once
// Attention of many queries on Hopper (sm_90a), after FlashAttention-3 (Shah et al. 2024): a
// warpgroup that only fetches keys and values, and others that each own 64 queries. A consumer
// starts the products of the next keys before it adds the values of the current ones, so that its
// softmax overlaps with tensor core work. Two consumers alternate in starting products, so that
// one's softmax overlaps with the other's products. Exponentials and tensor cores are equally
// limiting.
#include "backends/cuda/kernels/attention_wgmma.h"
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_softmax.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kGroup = 128;     // threads of a warpgroup
constexpr int kGroupRows = 64;  // queries of a consumer
// Named barriers: one for each consumer's turn, one for each consumer's own threads.
constexpr int kTurn = 1;
constexpr int kOwn = kTurn + 2;

// Heads of up to kQk elements, a multiple of 16, whose values have up to kV, in tiles of kKeys
// keys. kByThreads: threads copy (cp.async); else the copy engine does, whose writes need no fence.
template <int kQkOf, int kVOf, int kKeysOf, int kConsumersOf, int kStagesOf, bool kByThreadsOf>
struct WgmmaShape {
  static constexpr int kQk = kQkOf, kV = kVOf, kKeys = kKeysOf;
  static constexpr int kConsumers = kConsumersOf, kStages = kStagesOf;
  static constexpr bool kByThreads = kByThreadsOf;
  static constexpr int kRows = kConsumers * kGroupRows;
  static constexpr int kWarps = kConsumers * 4;
  // Rows in shared memory are tiles of 128 bytes.
  static constexpr int kQkTiles = (kQk + 63) / 64, kVTiles = (kV + 63) / 64;
  static constexpr int kTileBytes = kKeys * kSwizzleRow;
};

template <class Shape>
struct WgmmaShared {
  alignas(1024) unsigned char q[Shape::kConsumers][Shape::kQkTiles * kGroupRows * kSwizzleRow];
  alignas(1024) unsigned char k[Shape::kStages][Shape::kQkTiles * Shape::kTileBytes];
  alignas(1024) unsigned char v[Shape::kStages][Shape::kVTiles * Shape::kTileBytes];
  u64 k_full[Shape::kStages], k_empty[Shape::kStages];
  u64 v_full[Shape::kStages], v_empty[Shape::kStages];
};

// The structure, aligned, in the launch's memory, which is 1024 bytes larger.
template <class Shared>
RB_DEVICE Shared& aligned_shared(unsigned char* dynamic) {
  const u32 address = shared_address(dynamic);
  return *reinterpret_cast<Shared*>(dynamic + ((address + 1023) / 1024 * 1024 - address));
}

// One thread calls it; `arrivals` make a stage full.
template <class Shape>
RB_DEVICE void start_stages(WgmmaShared<Shape>& shared, u32 arrivals) {
  for (int i = 0; i < Shape::kStages; ++i) {
    start_barrier(&shared.k_full[i], arrivals);
    start_barrier(&shared.v_full[i], arrivals);
    start_barrier(&shared.k_empty[i], Shape::kWarps);
    start_barrier(&shared.v_empty[i], Shape::kWarps);
  }
}

// A warpgroup with 64 queries. A lane holds rows g and g + 8 of its warp's 16, g = lane / 4, and of
// each eight columns 2t and 2t + 1, t = lane % 4.
template <class T, class Shape>
class WgmmaConsumer {
 public:
  using Shared = WgmmaShared<Shape>;
  static constexpr int kKeys = Shape::kKeys;

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
    for (int i = 0; i < Shape::kV / 2; ++i) out_[i] = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      base_[half] = -infinity();
      sum_[half] = 0;
    }
  }

  RB_DEVICE void run(const TileKeys& tile) {
    const Keys keys{static_cast<int>(tile.first), static_cast<int>(tile.end),
                    static_cast<int>(tile.all_first), static_cast<int>(tile.all_end)};
    load_queries();
    if (keys.first < keys.end) {
      if (kTakeTurns && group_ == 1) named_arrive(kTurn, 2 * kGroup);  // the first is group 0's
      consume(keys);
    }
    write();
  }

 private:
  static constexpr bool kTakeTurns = Shape::kConsumers == 2;

  static constexpr float kSlack = 8, kLowest = -1e30f;

  // TileKeys in 32 bits.
  struct Keys {
    int first, end, all_first, all_end;
  };

  RB_DEVICE void consume(const Keys& keys) {
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
    for (int key = keys.first + kKeys; key < keys.end; key += kKeys) {
      const int before = stage;
      const u32 before_parity = parity;
      stage = (stage + 1) % Shape::kStages;
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
      const bool raised = weigh(keys, key, scores, keep);
      warpgroup_wait<0>();
      pin(out_);
      release(&shared_.v_empty[before]);
      if (raised) rescale(keep);
      round(scores, weights);
    }
    wait_copied(&shared_.v_full[stage], parity);
    start_values(weights, stage);
    warpgroup_wait<0>();
    pin(out_);
  }

  RB_DEVICE void await_turn() const {
    if (kTakeTurns) named_wait(kTurn + group_, 2 * kGroup);
  }
  RB_DEVICE void pass_turn() const {
    if (kTakeTurns) named_arrive(kTurn + 1 - group_, 2 * kGroup);
  }

  // Threads do not show the products what they copied, so the readers of the copies do.
  RB_DEVICE static void wait_copied(u64* full, u32 parity) {
    wait_phase(full, parity);
    if (Shape::kByThreads) publish_to_products();
  }

  // Every warp reports that it is done with a stage.
  RB_DEVICE void release(u64* empty) const {
    if (thread_ % 32 == 0) arrive(empty);
  }

  RB_DEVICE int row_of(int half) const {
    return group_ * kGroupRows + thread_ / 32 * 16 + half * 8 + thread_ % 32 / 4;
  }

  RB_DEVICE void load_queries() const {
    unsigned char* to = shared_.q[group_];
    constexpr int kParts = Shape::kQk / 8;
    for (int i = thread_; i < kGroupRows * kParts; i += kGroup) {
      const int row = i / kParts;
      const int part = i % kParts;
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
    const u64 k = matrix_descriptor(k_ + static_cast<u32>(stage * sizeof(shared_.k[0])), 16, 1024);
    pin(scores);
    warpgroup_begin();
#pragma unroll
    for (int d = 0; d < Shape::kQk; d += 16) {
      const int within = d % 64 * 2;
      multiply_rows<T>(scores, q_ + (d / 64 * kGroupRows * kSwizzleRow + within) / 16,
                       k + (d / 64 * kKeys * kSwizzleRow + within) / 16, d > 0);
    }
    warpgroup_commit();
  }

  // Along the sum, 16 values are 16 rows.
  RB_DEVICE void start_values(const u32 (&weights)[kKeys / 16][4], int stage) {
    const u64 v = matrix_descriptor(v_ + static_cast<u32>(stage * sizeof(shared_.v[0])),
                                    Shape::kTileBytes, 1024);
    pin(out_);
    warpgroup_begin();
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      multiply_columns<T>(out_, weights[key / 16], v + key * kSwizzleRow / 16);
    }
    warpgroup_commit();
  }

  // Turns products into weights relative to the rows' bases. A base follows its row's top only if
  // that has grown by more than kSlack. Larger weights and sums do no harm, because results are
  // divided by the sums (FlashAttention-4, Zadouri et al. 2026, section 3.2). True: scale earlier
  // sums by `keep`.
  RB_DEVICE bool weigh(const Keys& keys, int key, float (&scores)[kKeys / 2], float (&keep)[2]) {
    if (key < keys.all_first || key + kKeys > keys.all_end) hide(key, scores);
    const float tops[2] = {lane_top(scores, 0) * factor_, lane_top(scores, 1) * factor_};
    const bool raised = any_of_warp(tops[0] > base_[0] + kSlack || tops[1] > base_[1] + kSlack);
    if (raised) raise(tops, keep);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Rows without a visible key so far: weights are 2^-infinity = 0.
      const float base = MaxNumber{}(base_[half], kLowest);
      float sums[2] = {};
#pragma unroll
      for (int i = 2 * half; i < kKeys / 2; i += 4) {
        scores[i] = fast_exp2(scores[i] * factor_ - base);
        scores[i + 1] = fast_exp2(scores[i + 1] * factor_ - base);
        sums[0] += scores[i];
        sums[1] += scores[i + 1];
      }
      sum_[half] += sums[0] + sums[1];
    }
    return raised;
  }

  RB_DEVICE void raise(const float (&tops)[2], float (&keep)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float top = row_max(tops[half]);
      keep[half] = 1;
      if (!(top > base_[half])) continue;
      keep[half] = fast_exp2(base_[half] - top);  // 0 if there was no key
      sum_[half] *= keep[half];
      base_[half] = top;
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

  RB_DEVICE void hide(int key, float (&scores)[kKeys / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const KeyRange seen = seen_keys(p_, work_.span, work_.first + row_of(half));
      // From this lane's first key on; clamped to the tile.
      const int lane_key = key + thread_ % 4 * 2;
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

  // The products' fragments, rounded, are those of a left operand.
  RB_DEVICE static void round(const float (&scores)[kKeys / 2], u32 (&weights)[kKeys / 16][4]) {
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        weights[i][j] = round_pair<T>(scores[i * 8 + 2 * j], scores[i * 8 + 2 * j + 1]);
      }
    }
  }

  RB_DEVICE static bool any_of_warp(bool x) { return __any_sync(0xffffffffu, x); }
  RB_DEVICE void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < Shape::kV / 2; i += 4) {
      out_[i] *= keep[0];
      out_[i + 1] *= keep[0];
      out_[i + 2] *= keep[1];
      out_[i + 3] *= keep[1];
    }
  }

  RB_DEVICE void write() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = with_sink(p_, work_.head, wave_sum<32, 4>(sum_[half]), base_[half]);
      const float scale = sum == 0 ? 0.0f : 1.0f / sum;
      const int row = row_of(half);
      if (row >= work_.count) continue;
      const i64 to = query_offset(p_.y_at, work_.span, work_.head, work_.first + row);
#pragma unroll
      for (int i = 0; i < Shape::kV / 8; ++i) {
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
  float out_[Shape::kV / 2];
  // Of rows g and g + 8, in base 2: the level of the weights (-infinity: no key was seen), and sums
  // of this lane's columns.
  float base_[2], sum_[2];
};

}  // namespace gpu
}  // namespace rbee

#endif
