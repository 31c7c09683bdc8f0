#pragma once
// Copies of packed rows to shared memory for few rows of x (FewRowsParams), sm_80 and later (PTX
// ISA: cp.async).
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

// Queues the copy of kBytes (4, 8 or 16), zeros where `wanted` is false. Both addresses are
// multiples of kBytes.
template <int kBytes>
RB_DEVICE void copy_async(u32 to, const u8* from, bool wanted) {
  if constexpr (kBytes == 16) {
    copy_async16(to, from, wanted ? 16 : 0);
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "n"(kBytes), "r"(wanted ? kBytes : 0)
                 : "memory");
  }
}

// Waits until at most `pending` groups of this thread's copies are under way, 0 to
// kFewMostStages - 2.
RB_DEVICE void wait_copies_of(int pending) {
  static_assert(kFewMostStages == 6, "a case for each");
  switch (pending) {
    case 0:
      return wait_copies<0>();
    case 1:
      return wait_copies<1>();
    case 2:
      return wait_copies<2>();
    case 3:
      return wait_copies<3>();
    default:
      return wait_copies<4>();
  }
}

// Where 16 bytes of a tile's staged row lie, in 16 bytes from its first. Rows of 128 bytes are
// swizzled: lanes read two rows' neighbouring chunks at once.
template <int kRowBytes>
RB_DEVICE int few_chunk(int row, int chunk) {
  return kRowBytes == 128 ? chunk ^ (row & 1) : chunk;
}

// Queues the copies of kRowBytes of each of a tile's rows, which lie row_bytes apart, kPiece at a
// time; rows beyond the last are that again. Zeros for pieces from `pieces` on.
template <int kRowBytes, int kPiece>
RB_DEVICE void copy_plane(u32 to, const u8* from, i32 row_bytes, i32 last_row, i32 pieces) {
  constexpr int kPieces = kRowBytes / kPiece;
  constexpr int kCopies = kFewOuts * kPieces;
#pragma unroll
  for (int i = 0; i < (kCopies + kFewThreads - 1) / kFewThreads; ++i) {
    const int at = i * kFewThreads + static_cast<int>(thread_x());
    if (kCopies % kFewThreads != 0 && at >= kCopies) return;
    const int row = at / kPieces, piece = at % kPieces;
    const int place = kPiece == 16 ? few_chunk<kRowBytes>(row, piece) : piece;
    const u8* source = from + static_cast<i64>(row < last_row ? row : last_row) * row_bytes;
    const bool wanted = piece < pieces;
    copy_async<kPiece>(to + row * kRowBytes + place * kPiece,
                       wanted ? source + piece * kPiece : from, wanted);
  }
}

}  // namespace gpu
}  // namespace rbee
