#pragma once
// Single instructions that have another name for each vendor. portable.h has those for threads and
// memory.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

// 2^x with the hardware's accuracy (about 2 ulp); for softmax, where the result is a weight.
RB_DEVICE float fast_exp2(float x) {
#if defined(__CUDACC__)
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
#else
  return __builtin_amdgcn_exp2f(x);
#endif
}

// The larger number in one instruction. If one is NaN, gives the other: for largest scores this is
// fine, because the weights become NaN anyway.
struct MaxNumber {
  RB_DEVICE float operator()(float a, float b) const {
#if defined(__CUDACC__)
    return fmaxf(a, b);
#else
    return __builtin_fmaxf(a, b);
#endif
  }
};

// 1 / x with the hardware's accuracy (1 ulp).
RB_DEVICE float fast_reciprocal(float x) {
#if defined(__CUDACC__)
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
#else
  return __builtin_amdgcn_rcpf(x);
#endif
}

// c + the dot product of four signed bytes.
RB_DEVICE i32 dot4(u32 a, u32 b, i32 c) {
#if defined(__CUDACC__)
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
#elif defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_sudot4(true, static_cast<int>(a), true, static_cast<int>(b), c, false);
#else
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), c, false);
#endif
}

// The dot product of the nibbles of words with signed bytes: of a word's low nibbles with those of
// `low`, of its high nibbles with those of `high`.
class NibbleDot {
 public:
  RB_DEVICE void add(u32 word, u32 low, u32 high) {
    low_ = dot4(word & 0x0f0f0f0fu, low, low_);
#if defined(__CUDACC__)
    // The high nibbles where they are, as unsigned bytes 16 times as large.
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(high_) : "r"(word & 0xf0f0f0f0u), "r"(high));
#else
    low_ = dot4((word >> 4) & 0x0f0f0f0fu, high, low_);
#endif
  }
  RB_DEVICE i32 sum() const { return low_ + (high_ >> 4); }

 private:
  i32 low_ = 0, high_ = 0;
};

// Nibble i of kPick names byte i of the result: 0 to 3 are `first`'s, 4 to 7 `second`'s.
template <u32 kPick>
RB_DEVICE u32 pick_bytes(u32 first, u32 second) {
#if defined(__CUDACC__)
  return __byte_perm(first, second, kPick);
#else
  constexpr u32 kBytes =
      (kPick & 7) | (kPick >> 4 & 7) << 8 | (kPick >> 8 & 7) << 16 | (kPick >> 12 & 7) << 24;
  return __builtin_amdgcn_perm(second, first, kBytes);
#endif
}

// Prefetches memory that is read soon.
RB_DEVICE void prefetch(const void* from) {
#if defined(__CUDACC__)
  asm volatile("prefetch.global.L1 [%0];" ::"l"(from));
#else
  __builtin_prefetch(from);
#endif
}

// Values of a table of 16 bytes: those that the low nibbles of the codes' bytes name, and those
// that the high nibbles name.
struct Looked {
  u32 low, high;
};
RB_DEVICE Looked look_up(const u32 (&table)[4], u32 codes) {
#if defined(__CUDACC__)
  // A selector nibble of prmt names one of 8 bytes; a second prmt picks the half of the table.
  const u32 index = codes & 0x77777777u;
  const u32 half = 0x32103210u | ((codes & 0x88888888u) >> 1);
  const u32 first = __byte_perm(__byte_perm(table[0], table[1], index),
                                __byte_perm(table[2], table[3], index), half);
  const u32 second = __byte_perm(__byte_perm(table[0], table[1], index >> 16),
                                 __byte_perm(table[2], table[3], index >> 16), half >> 16);
  return {__byte_perm(first, second, 0x6420), __byte_perm(first, second, 0x7531)};
#else
  const auto pick = [&](u32 nibbles) {
    const u32 index = nibbles & 0x07070707u;
    const u32 low = __builtin_amdgcn_perm(table[1], table[0], index);
    const u32 high = __builtin_amdgcn_perm(table[3], table[2], index);
    // Byte j of the result is byte j of low, or of high where the nibble is 8 or more.
    const u32 half = ((nibbles >> 1) & 0x04040404u) | 0x03020100u;
    return __builtin_amdgcn_perm(high, low, half);
  };
  return {pick(codes & 0x0f0f0f0fu), pick((codes >> 4) & 0x0f0f0f0fu)};
#endif
}

// Loads words even if they are not used: clang would move a load that only a conditional uses
// behind a branch of its own. Metal's text has no instruction that would hold a word in place.
template <int kWords>
RB_DEVICE void load_anyway([[maybe_unused]] u32 (&words)[kWords]) {
#if !defined(__CUDACC__) && !defined(RBEE_METAL)
#pragma unroll
  for (u32& word : words) asm volatile("" : "+v"(word));
#endif
}

// A launch leaves a kernel's parameters in memory. Prefetched before the wait for the previous
// kernel, they are in the cache after it.
template <class Params>
RB_DEVICE void read_parameters([[maybe_unused]] const Params& params) {
#if defined(__CUDACC__)
  constexpr unsigned kLine = 64;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&params);
#pragma unroll
  for (unsigned at = 0; at < sizeof(Params); at += kLine) {
    asm volatile("" ::"r"(*reinterpret_cast<const unsigned*>(bytes + at)));
  }
#endif
}

}  // namespace gpu
}  // namespace rbee
