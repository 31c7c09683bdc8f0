#pragma once
// mma.m16n8k16 and the loads of its operands, sm_80 and later (PTX ISA 8.x, sections 9.7.14.5.8
// and 9.7.14.5.15). Fragments, with g = lane / 4 and t = lane % 4:
//   a: {row g, k 2t}, {row g + 8, k 2t}, {row g, k 2t + 8}, {row g + 8, k 2t + 8}, pairs along k
//   b: {k 2t, column g}, {k 2t + 8, column g}, pairs along k
//   c: {row g, columns 2t, 2t + 1}, {row g + 8, columns 2t, 2t + 1}

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

// Four 8 x 8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
RB_DEVICE void load_matrices(u32 (&out)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
RB_DEVICE void load_matrices_transposed(u32 (&out)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

// c += a * b for 16 x 16 times 16 x 8.
template <class T>
RB_DEVICE void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <>
RB_DEVICE void multiply_add<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
RB_DEVICE void multiply_add<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace gpu
}  // namespace rbee
