#pragma once
// The opened code book of formats of few bits, and their signs (packed_code_books.h), at the start
// of matvec_one_tma.h's shared memory. Lanes look up unrelated entries. With a copy for each lane,
// or for each two, in banks of its own they seldom wait for each other.
// Layout: OneBook.
#include "backends/gpu/instructions.h"
#include "backends/shared/tensor_one_params.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// All of a block's shared memory except what kernels declare.
RB_DEVICE u8* one_shared() {
  extern __shared__ __align__(kOneAlignment) u8 one_shared_bytes[];
  return one_shared_bytes;
}

template <class Block>
class OneBookOfLane {
 public:
  using Layout = OneBook<Block>;
  static constexpr bool kSigns = SignTable<Block>::kEntries > 0;

  RB_DEVICE OneBookOfLane()
      : point_(thread_x() % Layout::kPointCopies * 4),
        sign_(thread_x() % Layout::kSignCopies * 4) {}

  RB_DEVICE u32 operator()(u32 point) const {
    return word_at(point * (4 * Layout::kPointCopies) | point_);
  }
  RB_DEVICE u32 signs(u32 entry) const {
    return word_at(Layout::kPointBytes + (entry * (4 * Layout::kSignCopies) | sign_));
  }

  // kOneConsumers threads call it; a barrier must follow before any lookup.
  RB_DEVICE static void open() {
    if constexpr (Layout::kPoints > 0) {
      const u16* points = BookOf<Block>::words();
      for (u32 i = thread_x(); i < Layout::kPoints; i += kOneConsumers) {
        put<Layout::kPointCopies>(0, i, open_point<Block>(points[i]));
      }
    }
    if constexpr (kSigns) {
      for (u32 i = thread_x(); i < SignTable<Block>::kEntries; i += kOneConsumers) {
        put<Layout::kSignCopies>(Layout::kPointBytes, i, SignTable<Block>::word(i));
      }
    }
  }

 private:
  RB_DEVICE static u32 word_at(u32 byte) {
    return *reinterpret_cast<const u32*>(one_shared() + byte);
  }
  // Each thread begins at another copy, since the same copies of entries share banks.
  template <int kCopies>
  RB_DEVICE static void put(int first, u32 entry, u32 word) {
    if constexpr (kCopies == 1) {
      *reinterpret_cast<u32*>(one_shared() + first + 4 * entry) = word;
    } else {
      auto* to = reinterpret_cast<Words4*>(one_shared() + first) + entry * (kCopies / 4);
#pragma unroll
      for (u32 c = 0; c < kCopies / 4; ++c) {
        to[(c + entry) % (kCopies / 4)] = Words4{{word, word, word, word}};
      }
    }
  }

  const u32 point_, sign_;
};

}  // namespace gpu
}  // namespace rbee

#endif
