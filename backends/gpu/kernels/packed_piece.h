#pragma once
// A lane reads a row of a packed weight (packed_weight.h) in pieces: 32 codes, or 16 of 8-bit
// formats.
#include "backends/gpu/e4m3_dot.h"
#include "backends/gpu/instructions.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

// The value with index 4 * word + 0..3 of a code book, as the bytes of a word.
template <CodeBook kBook>
RB_DEVICE constexpr u32 book_word(int word) {
  u32 bytes = 0;
  for (int j = 0; j < 4; ++j) {
    const int index = 4 * word + j;
    const int value = kBook == CodeBook::iq4 ? iq4_value(index) : e2m1_doubled(index);
    bytes |= (static_cast<u32>(value) & 255u) << (8 * j);
  }
  return bytes;
}

// The same without their signs.
template <CodeBook kBook>
RB_DEVICE constexpr u32 book_sizes(int word) {
  const u32 values = book_word<kBook>(word);
  u32 sizes = 0;
  for (int j = 0; j < 4; ++j) {
    const u32 byte = (values >> (8 * j)) & 255u;
    sizes |= (byte < 128 ? byte : 256 - byte) << (8 * j);
  }
  return sizes;
}

// Shared memory with copied planes, and its readers (packed_weight.h).
struct SharedBytes {
  const u8* data;
  RB_DEVICE SharedBytes operator+(i64 bytes) const { return {data + bytes}; }
};
RB_DEVICE u8 read_u8(SharedBytes from) {
  return *from.data;
}
RB_DEVICE u16 read_u16(SharedBytes from) {
  return *reinterpret_cast<const u16*>(from.data);
}
RB_DEVICE u32 read_u32(SharedBytes from) {
  return *reinterpret_cast<const u32*>(from.data);
}
RB_DEVICE Words2 read_words2(SharedBytes from) {
  return *reinterpret_cast<const Words2*>(from.data);
}
RB_DEVICE Words4 read_words4(SharedBytes from) {
  return *reinterpret_cast<const Words4*>(from.data);
}
template <int kWords>
RB_DEVICE void load_once(SharedBytes from, u32 (&words)[kWords]) {
  struct alignas(4 * kWords) Words {
    u32 words[kWords];
  };
  const Words all = *reinterpret_cast<const Words*>(from.data);
  for (int i = 0; i < kWords; ++i) words[i] = all.words[i];
}

// A lane's part of a row at a time, as the planes hold it. kPoints: packed_points.h.
template <class Block, bool kPoints = PackedFormat<Block>::kCodeBook == CodeBook::points>
struct PackedPiece {
  using F = PackedFormat<Block>;
  static constexpr int kElements = packed_piece<Block>();
  static constexpr int kLowWords = kElements * F::kLow / 32;
  static constexpr int kHighWords = kElements * F::kHigh / 32;
  static constexpr bool kFloats = F::kCodeBook == CodeBook::e4m3;
  u32 low[kLowWords];
  u32 high[kHighWords > 0 ? kHighWords : 1];

  // Planes: RowPlanes of pointers into device memory, of SharedBytes, or the like.
  template <class Planes>
  RB_DEVICE void load(const Planes& row, i64 piece) {
    load_once(row.low + piece * (4 * kLowWords), low);
    if constexpr (kHighWords > 0) load_once(row.high + piece * (4 * kHighWords), high);
  }

  // Codes as signed bytes, with kFloats as they are: word w is elements 4 w + 0..3. Without
  // kOffset's subtraction. A book is for formats of points, which have another PackedPiece.
  template <class Book>
  RB_DEVICE void unpack(u32 (&codes)[kElements / 4], const Book&) const {
    unpack(codes);
  }
  RB_DEVICE void unpack(u32 (&codes)[kElements / 4]) const {
    if constexpr (F::kCodeBook != CodeBook::none && !kFloats) {
      constexpr u32 kTable[4] = {book_word<F::kCodeBook>(0), book_word<F::kCodeBook>(1),
                                 book_word<F::kCodeBook>(2), book_word<F::kCodeBook>(3)};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const Looked values = look_up(kTable, low[w]);
        codes[2 * w] = values.low;
        codes[2 * w + 1] = values.high;
      }
    } else {
#pragma unroll
      for (int w = 0; w < kElements / 4; ++w) {
        if constexpr (F::kLow == 8) codes[w] = low[w];
        if constexpr (F::kLow == 4) codes[w] = (low[w / 2] >> (4 * (w % 2))) & 0x0f0f0f0fu;
        if constexpr (F::kLow == 2) codes[w] = two_bit_codes(low[w / 4], w % 4);
        if constexpr (F::kHigh == 1) codes[w] |= one_bit_codes(high[0], w) << F::kLow;
        if constexpr (F::kHigh == 2) codes[w] |= two_bit_codes(high[w / 4], w % 4) << F::kLow;
      }
    }
  }
};

// 16 or 32 elements of x, signed bytes in words, in the form for products with a piece: for floats
// two words of f16 for four elements (E4m3Dot).
template <class Block>
class PieceX {
 public:
  static constexpr bool kFloats = PackedPiece<Block>::kFloats;
  static constexpr int kBytesWords = PackedPiece<Block>::kElements / 4;
  u32 words[kFloats ? 2 * kBytesWords : kBytesWords];

  RB_DEVICE void put(int word, u32 bytes) {
    if constexpr (kFloats) {
      E4m3Dot::pairs_of_bytes(bytes, words[2 * word], words[2 * word + 1]);
    } else {
      words[word] = bytes;
    }
  }
};

}  // namespace gpu
}  // namespace rbee
