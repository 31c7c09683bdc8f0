// Attention of many queries on Hopper (sm_90a), dense and paged (attention_consumer.h). cp.async
// fetches the rows, since it serves paged caches as well as dense tensors.
#include "backends/cuda/kernels/attention_consumer.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

template <int kDim>
using CopiedShape = WgmmaShape<kDim, kDim, 128, 2, 2, true>;

// Fetches tiles in the order of their use: keys and values of one tile, then the next.
// Instructions limit it, so each lane computes the place of one row, for all lanes.
template <class T, int kDim>
class WgmmaProducer {
 public:
  using Shape = CopiedShape<kDim>;
  using Shared = WgmmaShared<Shape>;
  static constexpr int kKeys = Shape::kKeys;
  static constexpr int kParts = kDim / 8;              // of 16 bytes, in a row
  static constexpr int kAtOnce = 32 / kParts;          // rows that a warp copies at once
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
    u32 parity = 1;  // the phase before a barrier's first counts as over
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
      stage = (stage + 1) % Shape::kStages;
      if (stage == 0) parity ^= 1;
    }
    wait_copies<0>();
  }

 private:
  // Of a row, in parts of 16 bytes: of tensors below 64 GiB.
  RB_DEVICE u32 place(const AttentionStrides& at, i64 key) const {
    return static_cast<u32>(key_offset(p_, at, work_.span, work_.kv_head, key) / 8);
  }

  // A tile with `rows` rows; zeros in the others and beyond `dim`.
  RB_DEVICE void copy_rows(unsigned char* to, const void* base, u32 place, int dim,
                           int rows) const {
    const int part = lane_ % kParts;
    const int row = warp_ * kAtOnce + lane_ / kParts;
    const u32 start = shared_address(to) + swizzled(kKeys, row, part);
    const bool inside = part * 8 < dim;
    const char* from = static_cast<const char*>(base) + (inside ? part * 16 : 0);
    const int here = inside ? rows - row : 0;
#pragma unroll
    for (int i = 0; i < kKeys / kStep; i += kBatch) {
      u32 places[kBatch];  // of this lane's rows, from the lanes that have them
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        places[j] = shuffle<32>(place, (i + j) * kAtOnce + lane_ / kParts);
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

template <class T, int kDim>
RB_DEVICE void attention_wgmma(const AttentionParams& p) {
  using Shape = CopiedShape<kDim>;
  extern __shared__ unsigned char dynamic[];
  auto& shared = aligned_shared<WgmmaShared<Shape>>(dynamic);
  TileWork work;
  if (!find_tile(p, Shape::kRows, work)) return;
  if (thread_x() == 0) start_stages(shared, kGroup);
  barrier();
  const TileKeys keys = tile_keys(p, work);
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<40>();
    WgmmaProducer<T, kDim>(p, work, shared).run(keys);
  } else {
    grow_registers<232>();
    WgmmaConsumer<T, Shape>(p, work, shared, group - 1).run(keys);
  }
}

// attention_wgmma_<dtype>_d<largest head>. A multiprocessor holds one block, whose bound on
// registers is what its warpgroups share out again.
#define RB_WGMMA(dtype, T, dim)                                                     \
  extern "C" __global__ void __launch_bounds__(3 * kGroup, 1)                       \
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
