#pragma once
// Turns scores into an operand of attention's second product on AMD's matrix units, and swizzles
// rows in shared memory.
#include "backends/rocm/kernels/matrix_units.h"

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

constexpr int kSums = sizeof(Results) / sizeof(float);  // of a lane

// Results one by one: branches would copy all of a vector to change one.
struct Scores {
  float values[kSums];
};

// Two values in the type of the products, rounded to nearest.
template <class T>
RB_DEVICE u32 round_weights(float first, float second) {
  if constexpr (SameType<T, bf16>::value) {
    return round_bf16_pair(Floats<2>{first, second});
  } else {
    return round_pair<T>(first, second);
  }
}

// A lane's part of the right operand of a product over 32 keys, from its scores of two times 16,
// and the key at place `at` of such a tile.
#if RB_MFMA
RB_DEVICE constexpr u32 key_at(u32 at) {
  return at / 32 * 32 + at % 8 / 4 * 16 + at % 32 / 8 * 4 + at % 4;
}
template <class T>
RB_DEVICE Fragment right_operand(const Scores (&x)[2], int) {
  Chunk words;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = round_weights<T>(x[i / 2].values[i % 2 * 2], x[i / 2].values[i % 2 * 2 + 1]);
  }
  return __builtin_bit_cast(Fragment, words);
}
#elif defined(__GFX12__)
RB_DEVICE constexpr u32 key_at(u32 at) {
  return at;
}
template <class T>
RB_DEVICE Fragment right_operand(const Scores (&x)[2], int) {
  Chunks out;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    out.chunks[i / 4][i % 4] =
        round_weights<T>(x[i / 4].values[i % 4 * 2], x[i / 4].values[i % 4 * 2 + 1]);
  }
  return __builtin_bit_cast(Fragment, out);
}
#else
// Of 16 keys the even ones, which the lower half of a wave holds, and then the odd ones.
RB_DEVICE constexpr u32 key_at(u32 at) {
  return at / 16 * 16 + at % 8 * 2 + at % 16 / 8;
}
template <class T>
RB_DEVICE Fragment right_operand(const Scores (&x)[2], int lane) {
  const bool upper = lane >= 16;
  Chunks out;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const u32 mine = round_weights<T>(x[i / 4].values[i % 4 * 2], x[i / 4].values[i % 4 * 2 + 1]);
    const u32 theirs = shuffle_xor<32>(mine, 16);
    out.chunks[i / 4 * 2][i % 4] = upper ? theirs : mine;
    out.chunks[i / 4 * 2 + 1][i % 4] = upper ? mine : theirs;
  }
  return __builtin_bit_cast(Fragment, out);
}
#endif

// The change to a chunk's number in a row of kRowChunks (16 bytes each), so that rows read at one
// chunk lie in different banks: any eight of 32, and sixteen of 64.
template <int kRowChunks>
RB_DEVICE u32 swizzle(u32 row) {
  if constexpr (kRowChunks >= 16) {
    return row & 15;
  } else if constexpr (kRowChunks == 8) {
    return (row >> 1 & 7) ^ (row & 1) << 2;
  } else {
    return (row >> 2 & 3) ^ (row & 2);
  }
}

}  // namespace gpu
}  // namespace rbee

#endif
