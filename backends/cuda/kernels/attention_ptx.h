#pragma once
// The PTX instructions that the attention kernels are made of (PTX ISA 8.x, sections 9.7.9 and
// 9.7.14). Fragments of mma.m16n8k16, with g = lane / 4 and t = lane % 4:
//   a: {row g, k 2t}, {row g + 8, k 2t}, {row g, k 2t + 8}, {row g + 8, k 2t + 8}, pairs along k
//   b: {k 2t, column g}, {k 2t + 8, column g}, pairs along k
//   c: {row g, columns 2t, 2t + 1}, {row g + 8, columns 2t, 2t + 1}

#include "backends/gpu/kernels/attention.h"

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

// Two floats rounded to 16 bits; `low` in the lower half.
template <class T>
RB_DEVICE u32 pack_pair(float low, float high);
template <>
RB_DEVICE u32 pack_pair<f16>(float low, float high) {
  u32 out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
template <>
RB_DEVICE u32 pack_pair<bf16>(float low, float high) {
  u32 out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}

// The larger number in one instruction; beside NaN the other, for tops of scores: their weights are
// NaN all the same.
struct MaxNumber {
  RB_DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
};
// Among the four lanes that hold a row's columns.
RB_DEVICE float row_max(float x) {
  return wave_reduce<32, 4>(x, MaxNumber{});
}

// Eight elements of q from offset `from`, f32 ones rounded to T.
template <class T>
RB_DEVICE Pack<T> load_query(const AttentionParams& p, i64 from) {
  if (p.q_type != AttentionType::f32) return load128(static_cast<const T*>(p.q) + from);
  Pack<T> out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Pack<float> in = load128(static_cast<const float*>(p.q) + from + 4 * half);
#pragma unroll
    for (int i = 0; i < 4; ++i) out.values[4 * half + i] = store_value<T>(in.values[i]);
  }
  return out;
}

// Two neighbours of y, of q's type.
template <class T>
RB_DEVICE void store_result(const AttentionParams& p, i64 to, float first, float second) {
  if (p.q_type != AttentionType::f32) {
    *reinterpret_cast<u32*>(static_cast<T*>(p.y) + to) = pack_pair<T>(first, second);
  } else {
    *reinterpret_cast<float2*>(static_cast<float*>(p.y) + to) = {first, second};
  }
}

// The same where q of any 16-bit type is multiplied as T.
template <class T>
RB_DEVICE Pack<T> load_any_query(const AttentionParams& p, i64 from) {
  if (p.q_type != AttentionType::bf16) return load_query<T>(p, from);
  const Pack<bf16> in = load128(static_cast<const bf16*>(p.q) + from);
  Pack<T> out;
#pragma unroll
  for (int i = 0; i < 8; ++i) out.values[i] = store_value<T>(to_float(in.values[i]));
  return out;
}
template <class T>
RB_DEVICE void store_any_result(const AttentionParams& p, i64 to, float first, float second) {
  if (p.q_type != AttentionType::bf16) return store_result<T>(p, to, first, second);
  *reinterpret_cast<u32*>(static_cast<bf16*>(p.y) + to) = pack_pair<bf16>(first, second);
}

}  // namespace gpu
}  // namespace rbee
