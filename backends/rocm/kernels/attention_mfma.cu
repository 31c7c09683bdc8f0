// Attention of many queries by CDNA's matrix instructions (gfx908, gfx90a, gfx942, gfx950); see
// attention_tiles.h. Tiles of 32 queries a wave halve what is read from shared memory, which limits
// it beside the matrix units.
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#include "backends/rocm/kernels/attention_tiles.h"

namespace rbee {
namespace gpu {

// v_mfma_f32_16x16x16 (AMD Instinct ISA documents, "matrix arithmetic instructions"), and twice as
// deep on gfx950.
struct Mfma {
  static constexpr int kWave = 64;
  static constexpr int kEach = 4;
  static constexpr int kSums = 4;
  using Floats = float __attribute__((ext_vector_type(4)));
  using Halves = _Float16 __attribute__((ext_vector_type(4)));
  using Shorts = short __attribute__((ext_vector_type(4)));
  using ShortPair = short __attribute__((ext_vector_type(2)));

  RB_DEVICE static int first_k(int lane) { return lane / 16 * 4; }
  RB_DEVICE static int sum_row(int lane, int i) { return lane / 16 * 4 + i; }

  template <class T>
  RB_DEVICE static void multiply(Sums<4>& c, const Elements<4>& a, const Elements<4>& b) {
    const Floats sums = __builtin_bit_cast(Floats, c);
    if constexpr (__is_same(T, f16)) {
      c = __builtin_bit_cast(Sums<4>, __builtin_amdgcn_mfma_f32_16x16x16f16(
                                          __builtin_bit_cast(Halves, a),
                                          __builtin_bit_cast(Halves, b), sums, 0, 0, 0));
    } else {
#if defined(__gfx908__)
      // Sums of eight: which elements are summed first makes no difference.
      const Floats half = __builtin_amdgcn_mfma_f32_16x16x8bf16(
          __builtin_bit_cast(ShortPair, a.words[0]), __builtin_bit_cast(ShortPair, b.words[0]),
          sums, 0, 0, 0);
      c = __builtin_bit_cast(
          Sums<4>, __builtin_amdgcn_mfma_f32_16x16x8bf16(__builtin_bit_cast(ShortPair, a.words[1]),
                                                         __builtin_bit_cast(ShortPair, b.words[1]),
                                                         half, 0, 0, 0));
#else
      c = __builtin_bit_cast(Sums<4>, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
                                          __builtin_bit_cast(Shorts, a),
                                          __builtin_bit_cast(Shorts, b), sums, 0, 0, 0));
#endif
    }
  }

  // Two products with neighbouring 16 elements of the sum. gfx950 has one instruction for them,
  // v_mfma_f32_16x16x32: which eight elements a lane holds makes no difference.
  template <class T>
  RB_DEVICE static void multiply_two(Sums<4>& c, const Elements<4> (&a)[2],
                                     const Elements<4> (&b)[2]) {
#if defined(__gfx950__)
    const Floats sums = __builtin_bit_cast(Floats, c);
    if constexpr (__is_same(T, f16)) {
      using Eight = _Float16 __attribute__((ext_vector_type(8)));
      c = __builtin_bit_cast(
          Sums<4>, __builtin_amdgcn_mfma_f32_16x16x32_f16(
                       __builtin_bit_cast(Eight, a), __builtin_bit_cast(Eight, b), sums, 0, 0, 0));
    } else {
      using Eight = __bf16 __attribute__((ext_vector_type(8)));
      c = __builtin_bit_cast(
          Sums<4>, __builtin_amdgcn_mfma_f32_16x16x32_bf16(
                       __builtin_bit_cast(Eight, a), __builtin_bit_cast(Eight, b), sums, 0, 0, 0));
    }
#else
    multiply<T>(c, a[0], b[0]);
    multiply<T>(c, a[1], b[1]);
#endif
  }

  // A lane's rows of a result are the elements that it holds of an operand.
  template <class T>
  RB_DEVICE static Elements<4> right_operand(const float (&x)[4], int) {
    return {pack_pair<T>(x[0], x[1]), pack_pair<T>(x[2], x[3])};
  }
};

// attention_mfma_<dtype>_d<largest head>[_shaped]
#define RB_MFMA(dtype, T, dim)                                                   \
  RB_KERNEL(attention_mfma_##dtype##_d##dim, kThreads, AttentionParams,          \
            (attention_amd<T, T, Mfma, dim, false>(p)))                          \
  RB_KERNEL(attention_mfma_##dtype##_d##dim##_shaped, kThreads, AttentionParams, \
            (attention_amd<T, T, Mfma, dim, true>(p)))
RB_MFMA(f16, f16, 64)
RB_MFMA(f16, f16, 128)
RB_MFMA(f16, f16, 256)
RB_MFMA(bf16, bf16, 64)
RB_MFMA(bf16, bf16, 128)
RB_MFMA(bf16, bf16, 256)

// Over 8-bit caches, as f16.
#define RB_MFMA_NARROW(dtype, KV, dim)                                  \
  RB_KERNEL(attention_mfma_##dtype##_d##dim, kThreads, AttentionParams, \
            (attention_amd<f16, KV, Mfma, dim, false>(p)))
RB_MFMA_NARROW(f8e4m3, f8e4m3, 64)
RB_MFMA_NARROW(f8e4m3, f8e4m3, 128)
RB_MFMA_NARROW(f8e4m3, f8e4m3, 256)
RB_MFMA_NARROW(q8_0, PageCode, 64)
RB_MFMA_NARROW(q8_0, PageCode, 128)
RB_MFMA_NARROW(q8_0, PageCode, 256)

}  // namespace gpu
}  // namespace rbee
#endif
