// Attention of many queries by RDNA's matrix instructions (gfx11, gfx12); see attention_tiles.h.
// The matrix units and the registers that feed them limit it.
#if defined(__GFX11__) || defined(__GFX12__)
#include "backends/rocm/kernels/attention_tiles.h"

namespace rbee {
namespace gpu {

using Floats = float __attribute__((ext_vector_type(8)));

#if defined(__GFX12__)

// v_wmma_f32_16x16x16 (RDNA 4 ISA, "wave matrix multiply accumulate").
struct Wmma {
  static constexpr int kWave = 32;
  static constexpr int kEach = 8;
  static constexpr int kSums = 8;
  using Halves = _Float16 __attribute__((ext_vector_type(8)));
  using Shorts = short __attribute__((ext_vector_type(8)));

  RB_DEVICE static int first_k(int lane) { return lane / 16 * 8; }
  RB_DEVICE static int sum_row(int lane, int i) { return lane / 16 * 8 + i; }

  template <class T>
  RB_DEVICE static Floats product(const Elements<8>& a, const Elements<8>& b, Floats sums) {
    if constexpr (__is_same(T, f16)) {
      return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_bit_cast(Halves, a),
                                                              __builtin_bit_cast(Halves, b), sums);
    } else {
      return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(__builtin_bit_cast(Shorts, a),
                                                               __builtin_bit_cast(Shorts, b), sums);
    }
  }

  // A lane's rows of a result are the elements that it holds of an operand.
  template <class T>
  RB_DEVICE static Elements<8> right_operand(const float (&x)[8], int) {
    return {pack_pair<T>(x[0], x[1]), pack_pair<T>(x[2], x[3]), pack_pair<T>(x[4], x[5]),
            pack_pair<T>(x[6], x[7])};
  }

#else

// v_wmma_f32_16x16x16 (RDNA 3 ISA, section 7.9): both halves of a wave hold whole operands, and
// each every second row of a result.
struct Wmma {
  static constexpr int kWave = 32;
  static constexpr int kEach = 16;
  static constexpr int kSums = 8;
  using Halves = _Float16 __attribute__((ext_vector_type(16)));
  using Shorts = short __attribute__((ext_vector_type(16)));

  RB_DEVICE static int first_k(int) { return 0; }
  RB_DEVICE static int sum_row(int lane, int i) { return 2 * i + lane / 16; }

  template <class T>
  RB_DEVICE static Floats product(const Elements<16>& a, const Elements<16>& b, Floats sums) {
    if constexpr (__is_same(T, f16)) {
      return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_bit_cast(Halves, a),
                                                        __builtin_bit_cast(Halves, b), sums);
    } else {
      return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(__builtin_bit_cast(Shorts, a),
                                                         __builtin_bit_cast(Shorts, b), sums);
    }
  }

  // Rows that the other half holds come from the lane 16 away; two at a time, packed.
  template <class T>
  RB_DEVICE static Elements<16> right_operand(const float (&x)[8], int lane) {
    const bool upper = lane >= 16;
    Elements<16> out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 mine = pack_pair<T>(x[2 * i], x[2 * i + 1]);
      const u32 theirs = shuffle_xor<32>(mine, 16);
      const u32 even = upper ? theirs : mine;
      const u32 odd = upper ? mine : theirs;
      out.words[2 * i] = (even & 0xffffu) | odd << 16;
      out.words[2 * i + 1] = even >> 16 | (odd & 0xffff0000u);
    }
    return out;
  }

#endif

  template <class T, int kCount>
  RB_DEVICE static void multiply(Sums<8>& c, const Elements<kCount>& a, const Elements<kCount>& b) {
    c = __builtin_bit_cast(Sums<8>, product<T>(a, b, __builtin_bit_cast(Floats, c)));
  }
  template <class T, int kCount>
  RB_DEVICE static void multiply_two(Sums<8>& c, const Elements<kCount> (&a)[2],
                                     const Elements<kCount> (&b)[2]) {
    multiply<T>(c, a[0], b[0]);
    multiply<T>(c, a[1], b[1]);
  }
};

// attention_wmma_<dtype>_d<largest head>[_shaped]
#define RB_WMMA(dtype, T, dim)                                                   \
  RB_KERNEL(attention_wmma_##dtype##_d##dim, kThreads, AttentionParams,          \
            (attention_amd<T, T, Wmma, dim, false>(p)))                          \
  RB_KERNEL(attention_wmma_##dtype##_d##dim##_shaped, kThreads, AttentionParams, \
            (attention_amd<T, T, Wmma, dim, true>(p)))
RB_WMMA(f16, f16, 64)
RB_WMMA(f16, f16, 128)
RB_WMMA(bf16, bf16, 64)
RB_WMMA(bf16, bf16, 128)

// Over 8-bit caches, as f16.
#define RB_WMMA_NARROW(dtype, KV, dim)                                  \
  RB_KERNEL(attention_wmma_##dtype##_d##dim, kThreads, AttentionParams, \
            (attention_amd<f16, KV, Wmma, dim, false>(p)))
RB_WMMA_NARROW(f8e4m3, f8e4m3, 64)
RB_WMMA_NARROW(f8e4m3, f8e4m3, 128)
RB_WMMA_NARROW(q8_0, PageCode, 64)
RB_WMMA_NARROW(q8_0, PageCode, 128)

}  // namespace gpu
}  // namespace rbee
#endif
