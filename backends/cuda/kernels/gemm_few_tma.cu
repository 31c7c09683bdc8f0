// y = x * weight^T + bias for 9 to 64 rows of x on Hopper (sm_90a), of f16 and bf16; the copy
// engine fetches both operands. Rows of the weight are the product's first operand, since that has
// at least 64. A block has a tile of 128 of them and, if tiles are few, a share of the depth;
// few_sum adds the shares. The weights' memory limits it: a block has about 100 KB of them under
// way, and two blocks share a multiprocessor.
#include "backends/cuda/kernels/tensor_ring.h"
#include "backends/gpu/kernels/few_parts.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kFetchWarp = kProducts * kGroup / 32;  // after the warpgroups that multiply

// kN: 8 rows of x each.
template <class T, int kN>
class FewProduct {
 public:
  RB_DEVICE FewProduct(const FewTensorParams& p, u8* data, u64* full, u64* empty)
      : p_(p.few), maps_(p), data_(data), full_(full), empty_(empty) {
    const i32 units = (p_.in + kUnit - 1) / kUnit, steps = (p_.in + kStepDepth - 1) / kStepDepth;
    const i32 split = static_cast<i32>(block_y());
    const i32 end = units * (split + 1) / p_.splits * (kUnit / kStepDepth);
    first_ = units * split / p_.splits * (kUnit / kStepDepth);
    end_ = end < steps ? end : steps;
  }

  RB_DEVICE void fetch() {
    const TensorMap* weight = &maps_.weights[0];
    i32 out = static_cast<i32>(block_x());
#pragma unroll
    for (int i = 1; i < kMatvecParts; ++i) {
      if (i >= p_.part_count || block_x() < p_.parts[i].first_block) continue;
      weight = &maps_.weights[i];
      out = static_cast<i32>(block_x() - p_.parts[i].first_block);
    }
    RingPlace<kStages> ring;
    for (i32 step = first_; step < end_; ++step, ring.next()) {
      u64* full = &full_[ring.stage];
      wait_phase(&empty_[ring.stage], ring.parity ^ 1);
      arrive_with_bytes(full, kStageBytes);
      const u32 to = shared_address(data_) + static_cast<u32>(ring.stage * kStageBytes);
      copy_box<false>(to, *weight, full, step * kStepDepth, out * kFewTensorOuts, 0, 0);
      copy_box<false>(to + kWeightBytes, maps_.x, full, step * kStepDepth, 0, 0, 0);
    }
  }

  RB_DEVICE void multiply(int group) {
    float sums[kSums] = {};
    RingPlace<kStages> ring, released;
    const auto release = [&] {
      if (thread_x() % kGroup == 0) arrive(&empty_[released.stage]);
      released.next();
    };
    for (i32 step = first_; step < end_; ++step, ring.next()) {
      wait_phase(&full_[ring.stage], ring.parity);
      const u32 at = shared_address(data_) + static_cast<u32>(ring.stage * kStageBytes);
      pin(sums);
      warpgroup_begin();
#pragma unroll
      for (u32 k = 0; k < kSwizzleRow; k += 32) {
        const u32 weight = at + static_cast<u32>(group * kGroupRows * kSwizzleRow) + k;
        multiply_rows<T>(sums, matrix_descriptor(weight, 16, 1024),
                         matrix_descriptor(at + kWeightBytes + k, 16, 1024));
      }
      warpgroup_commit();
      if (step == first_) continue;
      warpgroup_wait<1>();  // the step before
      release();
    }
    warpgroup_wait<0>();
    pin(sums);
    stage(group, sums);
    store();
  }

  static constexpr int kStages = few_tensor_stages(kN);

 private:
  static constexpr int kUnit = 128;  // unit for sharing out the depth
  static constexpr int kSums = 4 * kN;
  static constexpr int kWeightBytes = kFewTensorOuts * kSwizzleRow;
  static constexpr int kStageBytes = few_tensor_stage(kN);
  // Floats between rows of x in the results: lanes then write to banks of their own.
  static constexpr int kPitch = kFewTensorOuts + 4;
  static_assert(kN * 8 * kPitch * 4 <= kStages * kStageBytes, "results lie where the ring was");

  // Writes results over the ring, which both warpgroups have read, in the order of y.
  RB_DEVICE void stage(int group, const float (&sums)[kSums]) {
    named_wait(1, kProducts * kGroup);
    const int lane = static_cast<int>(thread_x()) % 32, warp = static_cast<int>(thread_x()) / 32;
    const int out = group * kGroupRows + warp % 4 * 16 + lane / 4;
    float* const to = reinterpret_cast<float*>(data_);
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int row = i / 4 * 8 + lane % 4 * 2 + i % 2;
      to[row * kPitch + out + i / 2 % 2 * 8] = sums[i];
    }
    named_wait(1, kProducts * kGroup);
  }

  RB_DEVICE void store() const {
    const MatvecPart part = few_part(p_, block_x());
    const i64 out0 = (block_x() - part.first_block) * static_cast<i64>(kFewTensorOuts);
    const int within = static_cast<int>(thread_x()) % kFewTensorOuts;
    const i64 out = out0 + within;
    if (out >= part.outs) return;
    const bool whole = p_.splits == 1;
    const i64 tile_rows =
        (static_cast<i64>(block_x()) * p_.splits + static_cast<i64>(block_y())) * p_.rows;
    const float bias =
        whole && part.bias != nullptr ? load_value(static_cast<const T*>(part.bias)[out]) : 0.0f;
    const float* const from = reinterpret_cast<const float*>(data_);
    for (int row = static_cast<int>(thread_x()) / kFewTensorOuts; row < p_.rows; row += kProducts) {
      const float sum = from[row * kPitch + within];
      if (whole) {
        static_cast<T*>(part.y)[row * part.outs + out] = store_value<T>(sum + bias);
      } else {
        p_.partials[(tile_rows + row) * kFewTensorOuts + within] = sum;
      }
    }
  }

  const FewRowsParams& p_;
  const FewTensorParams& maps_;
  u8* const data_;  // the ring, in shared memory
  u64 *const full_, *const empty_;
  i32 first_, end_;  // steps of the block
};

template <class T, int kN>
RB_DEVICE void gemm_few(const FewTensorParams& p) {
  using Product = FewProduct<T, kN>;
  static_assert(kFewTensorOuts == kProducts * kGroupRows, "a warpgroup has half of a tile");
  RB_DYNAMIC_SHARED(dynamic);
  RB_SHARED u64 full[Product::kStages], empty[Product::kStages];
  if (thread_x() == 0) {
    prefetch_map(p.x);
    for (int i = 0; i < Product::kStages; ++i) {
      start_barrier(&full[i], 1);
      start_barrier(&empty[i], kProducts);
    }
    publish_barriers();
  }
  barrier();
  wait_for_previous_kernel();
  const u32 address = shared_address(dynamic);
  Product product(p, dynamic + (((address + 1023) & ~1023u) - address), full, empty);
  const int warp = static_cast<int>(thread_x()) / 32;
  if (warp == kFetchWarp) {
    if (thread_x() % 32 == 0) product.fetch();
  } else {
    product.multiply(warp / 4);
  }
}

#define RB_FEW(dtype, T, n)                                                                 \
  RB_KERNEL_AHEAD(gemm_few_##dtype##_##dtype##_n##n, kFewTensorThreads, 2, FewTensorParams, \
                  (gemm_few<T, n>(p)))
#define RB_FEW_OF(dtype, T) RB_FEW(dtype, T, 2) RB_FEW(dtype, T, 4) RB_FEW(dtype, T, 8)
RB_FEW_OF(f16, f16)
RB_FEW_OF(bf16, bf16)

}  // namespace gpu
}  // namespace rbee

#endif
