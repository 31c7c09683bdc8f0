#pragma once
// Packed rows of formats of few bits for matvec_quant.h. Their code book lies in shared memory: a
// wave's lanes look up points that have nothing to do with each other.
#include "backends/gpu/kernels/packed_piece.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

template <class Block>
RB_DEVICE u16* shared_book() {
  RB_SHARED alignas(16) u16 words[BookOf<Block>::kPoints];
  return words;
}

// All threads of a block take part; it is there when they return.
template <class Block>
RB_DEVICE void copy_book() {
  constexpr int kPacks = BookOf<Block>::kPoints / 8;
  if constexpr (kPacks > 0) {
    const auto* from = reinterpret_cast<const Bytes16*>(BookOf<Block>::words());
    auto* to = reinterpret_cast<Bytes16*>(shared_book<Block>());
    for (u32 i = thread_x(); i < kPacks; i += kMatvecThreads) to[i] = from[i];
    barrier();
  }
}

template <class Block>
struct PackedPiece<Block, true> {
  static constexpr int kElements = 32;
  static constexpr bool kFloats = false;
  CodeGroup<Block> group;

  RB_DEVICE void load_from(const u8* row, const PackedLayout& at, i64 piece) {
    group.load(row, at, piece);
  }
  RB_DEVICE void unpack(u32 (&codes)[kElements / 4]) const {
#pragma unroll
    for (int w = 0; w < kElements / 4; ++w) {
      if constexpr (BookOf<Block>::kPoints > 0) {
        codes[w] = group.codes(shared_book<Block>(), w);
      } else {
        codes[w] = group.codes(BookOf<Block>::words(), w);
      }
    }
  }
};

}  // namespace gpu
}  // namespace rbee
