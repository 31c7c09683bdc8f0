#pragma once
// AMD's matrix instructions as one operation: 16 x 16 results of a wave += a * b over 32 of the
// depth (AMD ISA documents: CDNA2/CDNA3 "MFMA", RDNA3/RDNA4 "WMMA"). If a target has
// none, RB_MATRIX_UNIT is 0 and there is nothing here.
//
// A lane may hold any elements of the depth as long as a and b agree, so each target
// takes the elements of one or two 16-byte reads.

#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/gemm_stage.h"

#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define RB_MATRIX_UNIT 1
#define RB_MFMA 1
#elif defined(__GFX11__) || defined(__GFX12__)
#define RB_MATRIX_UNIT 1
#define RB_MFMA 0
#else
#define RB_MATRIX_UNIT 0
#endif

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

template <int kCount>
using Floats = float __attribute__((ext_vector_type(kCount)));
template <class T, int kCount>
using Vector = T __attribute__((ext_vector_type(kCount)));

#if RB_MFMA

constexpr int kWave = 64;
using Results = Floats<4>;
// Row of result i; the column is lane % 16.
RB_DEVICE int result_row(int i, int lane) {
  return lane / 16 * 4 + i;
}

// A lane's part of 16 lines: a fourth of line lane % 16.
struct Fragment {
  Bytes16 chunk;
  RB_DEVICE void load(const u8* operand, int line0, int lane) {
    chunk = *reinterpret_cast<const Bytes16*>(operand + chunk_offset(line0 + lane % 16, lane / 16));
  }
};

#if defined(__gfx950__)
template <class T>
RB_DEVICE void multiply_add(Results& sums, const Fragment& a, const Fragment& b) {
  if constexpr (SameType<T, f16>::value) {
    using Eight = Vector<_Float16, 8>;
    sums = __builtin_amdgcn_mfma_f32_16x16x32_f16(
        __builtin_bit_cast(Eight, a.chunk), __builtin_bit_cast(Eight, b.chunk), sums, 0, 0, 0);
  } else {
    using Eight = Vector<__bf16, 8>;
    sums = __builtin_amdgcn_mfma_f32_16x16x32_bf16(
        __builtin_bit_cast(Eight, a.chunk), __builtin_bit_cast(Eight, b.chunk), sums, 0, 0, 0);
  }
}
#else
template <class T>
RB_DEVICE void multiply_add(Results& sums, const Fragment& a, const Fragment& b) {
  if constexpr (SameType<T, f16>::value) {
    struct Halves {
      Vector<_Float16, 4> part[2];
    };
    const auto x = __builtin_bit_cast(Halves, a.chunk);
    const auto w = __builtin_bit_cast(Halves, b.chunk);
    for (int i = 0; i < 2; ++i) {
      sums = __builtin_amdgcn_mfma_f32_16x16x16f16(x.part[i], w.part[i], sums, 0, 0, 0);
    }
  } else {
#if defined(__gfx908__)
    struct Pairs {
      Vector<short, 2> part[4];
    };
    const auto x = __builtin_bit_cast(Pairs, a.chunk);
    const auto w = __builtin_bit_cast(Pairs, b.chunk);
    for (int i = 0; i < 4; ++i) {
      sums = __builtin_amdgcn_mfma_f32_16x16x8bf16(x.part[i], w.part[i], sums, 0, 0, 0);
    }
#else
    struct Halves {
      Vector<short, 4> part[2];
    };
    const auto x = __builtin_bit_cast(Halves, a.chunk);
    const auto w = __builtin_bit_cast(Halves, b.chunk);
    for (int i = 0; i < 2; ++i) {
      sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x.part[i], w.part[i], sums, 0, 0, 0);
    }
#endif
  }
}
#endif

#else

template <bool kFirst, class A, class B>
struct Choose {
  using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using type = B;
};

constexpr int kWave = 32;
using Results = Floats<8>;

#if defined(__GFX11__)
RB_DEVICE int result_row(int i, int lane) {
  return 2 * i + lane / 16;
}
// All of line lane % 16: both halves of a wave hold the same.
struct Fragment {
  Bytes16 chunks[4];
  RB_DEVICE void load(const u8* operand, int line0, int lane) {
    for (int i = 0; i < 4; ++i) {
      chunks[i] = *reinterpret_cast<const Bytes16*>(operand + chunk_offset(line0 + lane % 16, i));
    }
  }
};
constexpr int kLaneDepth = 16;
#else
RB_DEVICE int result_row(int i, int lane) {
  return lane / 16 * 8 + i;
}
// Half of line lane % 16: every other chunk.
struct Fragment {
  Bytes16 chunks[2];
  RB_DEVICE void load(const u8* operand, int line0, int lane) {
    for (int i = 0; i < 2; ++i) {
      chunks[i] = *reinterpret_cast<const Bytes16*>(
          operand + chunk_offset(line0 + lane % 16, 2 * i + lane / 16));
    }
  }
};
constexpr int kLaneDepth = 8;
#endif

template <class T>
RB_DEVICE void multiply_add(Results& sums, const Fragment& a, const Fragment& b) {
  using Element = typename Choose<SameType<T, f16>::value, _Float16, short>::type;
  struct Halves {
    Vector<Element, kLaneDepth> part[2];
  };
  const auto x = __builtin_bit_cast(Halves, a);
  const auto w = __builtin_bit_cast(Halves, b);
  for (int i = 0; i < 2; ++i) {
#if defined(__GFX11__)
    if constexpr (SameType<T, f16>::value) {
      sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x.part[i], w.part[i], sums);
    } else {
      sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x.part[i], w.part[i], sums);
    }
#else
    if constexpr (SameType<T, f16>::value) {
      sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x.part[i], w.part[i], sums);
    } else {
      sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(x.part[i], w.part[i], sums);
    }
#endif
  }
}

#endif

// Instructions of multiply_add().
template <class T>
#if defined(__gfx950__)
constexpr int kInstructions = 1;
#elif defined(__gfx908__)
constexpr int kInstructions = SameType<T, f16>::value ? 2 : 4;
#else
constexpr int kInstructions = 2;
#endif

// 16 bytes of a lane's share of an operand.
using Chunk = Vector<u32, 4>;
constexpr int kChunks = sizeof(Fragment) / sizeof(Chunk);  // of eight elements
struct Chunks {
  Chunk chunks[kChunks];
};

// Chunk c of the lane's part of product `part` along the depth, for lanes of a line with chunks
// side by side.
RB_DEVICE int chunk_of_lane(int part, int c, int lane) {
#if defined(__GFX11__)
  return part * 4 + c;  // both halves of a wave have the same
#else
  return part * 4 + c * (4 / kChunks) + lane / 16;
#endif
}

// Two floats as a pair of bf16, rounded to nearest: the only NaN are those of conversions.
RB_DEVICE u32 round_bf16_pair(Floats<2> values) {
#if defined(__gfx950__)
  return __builtin_bit_cast(u32, __builtin_convertvector(values, Vector<__bf16, 2>));
#else
  const u32 low = bits_of_float(values[0]) + 0x8000u;
  const u32 high = bits_of_float(values[1]) + 0x8000u;
  return pick_bytes<0x7632>(low, high);
#endif
}

}  // namespace gpu
}  // namespace rbee

#endif
