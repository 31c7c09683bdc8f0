#pragma once
// Pieces of formats of few bits (packed_code_books.h). A block of threads keeps their code book in
// shared memory, because a wave's lanes look up unrelated points.
#include "backends/gpu/kernels/packed_piece.h"

namespace rbee {
namespace gpu {

// Opened points.
template <class Block>
RB_DEVICE u32* shared_book() {
  RB_SHARED u32 words[BookOf<Block>::kPoints];
  return words;
}
template <class Block>
struct SharedBook {
  static constexpr bool kSigns = false;
  RB_DEVICE u32 operator()(u32 point) const { return shared_book<Block>()[point]; }
};

// Expands `thread`'s part, of kThreads, of the format's code book, if it has one. A barrier must
// follow before pieces are unpacked.
template <class Block, int kThreads>
RB_DEVICE void open_book(u32 thread) {
  constexpr u32 kPairs = BookOf<Block>::kPoints / 2;
  if constexpr (kPairs > 0) {
    const auto* from = reinterpret_cast<const u32*>(BookOf<Block>::words());
    for (u32 i = thread; i < kPairs; i += kThreads) {
      const u32 pair = from[i];
      shared_book<Block>()[2 * i] = open_point<Block>(pair & 0xffffu);
      shared_book<Block>()[2 * i + 1] = open_point<Block>(pair >> 16);
    }
  }
}
// All threads of a block call it; it has the barrier.
template <class Block, int kThreads>
RB_DEVICE void share_book() {
  open_book<Block, kThreads>(thread_x());
  if constexpr (BookOf<Block>::kPoints > 0) barrier();
}

template <class Block>
struct PackedPiece<Block, true> {
  static constexpr int kElements = 32;
  static constexpr bool kFloats = false;
  CodeGroup<Block> group;

  template <class Planes>
  RB_DEVICE void load(const Planes& row, i64 piece) {
    group.load(row, piece);
  }
  RB_DEVICE void unpack(u32 (&codes)[kElements / 4]) const { unpack(codes, SharedBook<Block>{}); }
  template <class Book>
  RB_DEVICE void unpack(u32 (&codes)[kElements / 4], const Book& book) const {
    if constexpr (BookOf<Block>::kPoints > 0) {
#pragma unroll
      for (int w = 0; w < kElements / 4; ++w) codes[w] = group.codes(book, w);
    } else {
      group.all(codes);
    }
  }
};

}  // namespace gpu
}  // namespace rbee
