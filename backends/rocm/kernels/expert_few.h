#pragma once
// Products of many choices with experts' weights, packed or of x's type, by FewMatrix: a
// block takes up to kExpertRows choices of one expert by kFewMatrixOuts outputs, so it reads
// weights unconverted, once if an expert has no more choices. This reading limits it if
// choices are few, else unpacking does.
#include "backends/gpu/kernels/expert_rows.h"
#include "backends/rocm/kernels/matvec_matrix.h"

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

// kRows: rows of x that there is room for.
template <class T, int kRows>
class ExpertWork {
 public:
  // row_bytes: of a row of the weight.
  RB_DEVICE ExpertWork(const ExpertGemmParams& params, const ExpertPlace& place, i64 row_bytes)
      : p_(params), place_(place), row_bytes_(row_bytes) {
#pragma unroll
    for (int i = 0; i < kXChunks; ++i) {
      const int row = (i * kFewMatrixThreads + static_cast<int>(thread_x())) / 16;
      x_rows_[i] = static_cast<i32>(place_.row_of_x(p_, row < place_.rows ? row : place_.rows - 1));
    }
  }

  RB_DEVICE i32 in() const { return p_.depth; }
  RB_DEVICE i32 rows() const { return place_.rows; }
  RB_DEVICE MatvecPart part() const {
    const i64 outs = p_.outs;
    const u8* bias = static_cast<const u8*>(p_.bias);
    if (bias != nullptr) bias += place_.expert * outs * (p_.y_type == 0 ? 4 : 2);
    const i64 expert = place_.expert - p_.first;
    return {static_cast<const u8*>(p_.weight) + expert * outs * row_bytes_, bias, p_.y, outs, 0};
  }
  RB_DEVICE i64 first_out(const MatvecPart&) const { return place_.out; }
  RB_DEVICE i32 first_unit(i32) const { return 0; }
  RB_DEVICE i32 end_unit(i32 units) const { return units; }
  RB_DEVICE const T* x_row(int i, int) const {
    return static_cast<const T*>(p_.x) + static_cast<i64>(x_rows_[i]) * p_.depth;
  }

  RB_DEVICE float bias(const MatvecPart& part, i64 out) const {
    if (part.bias == nullptr) return 0.0f;
    if (p_.y_type == 0) return static_cast<const float*>(part.bias)[out];
    if (p_.y_type == 1) return load_value(static_cast<const f16*>(part.bias)[out]);
    return load_value(static_cast<const bf16*>(part.bias)[out]);
  }
  RB_DEVICE void store(const MatvecPart& part, int row, i64 out, int, float sum) const {
    const i64 at = place_.choices[row] * part.outs + out;
    if (p_.y_type == 0) {
      static_cast<float*>(part.y)[at] = sum;
    } else if (p_.y_type == 1) {
      static_cast<f16*>(part.y)[at] = store_value<f16>(sum);
    } else {
      static_cast<bf16*>(part.y)[at] = store_value<bf16>(sum);
    }
  }

 private:
  static constexpr int kXChunks = kRows * 16 / kFewMatrixThreads;  // of FewMatrix

  const ExpertGemmParams& p_;
  const ExpertPlace& place_;
  const i64 row_bytes_;
  i32 x_rows_[kXChunks];
};

template <class Weight, class T, int kRows>
RB_DEVICE void expert_few_rows(const ExpertGemmParams& p, const ExpertPlace& place, u8* stages) {
  using Rows = typename RowsOf<Weight, T>::Type;
  const ExpertWork<T, kRows> work(p, place, Rows(p.depth).row_bytes());
  FewMatrix<Rows, ExpertWork<T, kRows>, T, kRows>(work).run(
      reinterpret_cast<u8(*)[kRows * kFewRowBytes]>(stages));
}

// Most experts have few rows of a step, so these have a loop of their own.
template <class Weight, class T>
RB_DEVICE void expert_few(const ExpertGemmParams& p) {
  alignas(16) RB_SHARED u8 stages[2 * kExpertRows * kFewRowBytes];
  ExpertPlace place;
  if (!find_place<kFewMatrixOuts>(p, place)) return;
  share_book<Weight, kFewMatrixThreads>();
  if (place.rows <= 16) {
    expert_few_rows<Weight, T, 16>(p, place, stages);
  } else {
    expert_few_rows<Weight, T, kExpertRows>(p, place, stages);
  }
}

// expert_few_<type of x>_<type of the weight>
#define RB_EXPERT_FEW_OF(dtype, Weight, T)                                 \
  RB_KERNEL(expert_few_##T##_##dtype, kFewMatrixThreads, ExpertGemmParams, \
            (expert_few<Weight, T>(p)))
#define RB_EXPERT_FEW(dtype, Block)   \
  RB_EXPERT_FEW_OF(dtype, Block, f16) \
  RB_EXPERT_FEW_OF(dtype, Block, bf16)
#define RB_EXPERT_FEW_PLAIN(T) RB_EXPERT_FEW_OF(T, T, T)

}  // namespace gpu
}  // namespace rbee

#else

#define RB_EXPERT_FEW(dtype, Block)
#define RB_EXPERT_FEW_PLAIN(T)

#endif
