#pragma once
// Codes of packed weights (packed_piece.h) as neighbouring 16-bit floats, exactly, for matrix
// units, before scales.
#include "backends/gpu/e4m3_dot.h"
#include "backends/gpu/instructions.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

constexpr u32 kMinusZeroPair = 0x80008000u;

// The kind of bytes in a word of codes.
enum class Codes { unsigned_bytes, signed_bytes, e4m3 };
template <class Block>
constexpr Codes kCodesOf =
    PackedFormat<Block>::kCodeBook == CodeBook::e4m3 ? Codes::e4m3
    : PackedFormat<Block>::kLow == 8 || PackedFormat<Block>::kCodeBook != CodeBook::none
        ? Codes::signed_bytes
        : Codes::unsigned_bytes;
// Formats whose values are d * quant + m; the others' m is 0.
template <class Block>
constexpr bool kHasMinima =
    PackedFormat<Block>::kOffset == 0 && kCodesOf<Block> == Codes::unsigned_bytes;

// The quants of four neighbouring codes, in the bytes of a word, exactly as values of T. Integers:
// a byte in the low bits of a number whose last place counts 1, minus that number.
template <class T, Codes kCodes, int kOffset>
struct Widen;
template <Codes kCodes, int kOffset>
struct Widen<f16, kCodes, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    constexpr bool kSigned = kCodes == Codes::signed_bytes;
    if (kSigned) codes ^= 0x80808080u;  // + 128
    const u32 less =
        round_pair<f16>(-1024.0f - (kSigned ? 128 : kOffset), -1024.0f - (kSigned ? 128 : kOffset));
    const u32 one = 0x3c003c00u;
    pairs[0] = fma_pair<f16>(pick_bytes<0x4140>(codes, 0x64646464u), one, less);
    pairs[1] = fma_pair<f16>(pick_bytes<0x4342>(codes, 0x64646464u), one, less);
  }
};
// A float of one byte is a wider one's first bits, except for the difference of the exponents'
// biases; this includes numbers below the smallest normal one.
template <int kOffset>
struct Widen<f16, Codes::e4m3, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
#if defined(RB_E4M3_HALVES)
    e4m3_halves(codes, pairs);
#else
    const u32 by = 0x5c005c00u;  // 2^8
    pairs[0] = fma_pair<f16>(shifted(pick_bytes<0x1404>(codes, 0)), by, kMinusZeroPair);
    pairs[1] = fma_pair<f16>(shifted(pick_bytes<0x3424>(codes, 0)), by, kMinusZeroPair);
#endif
  }

 private:
  RB_DEVICE static u32 shifted(u32 codes) {
    return (codes & 0x80008000u) | ((codes >> 1) & 0x3f803f80u);
  }
};

}  // namespace gpu
}  // namespace rbee
