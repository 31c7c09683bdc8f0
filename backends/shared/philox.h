#pragma once
// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011), section 3.3: ten rounds of multiply and xor turn a
// 128-bit counter under a 64-bit key into 128 random bits. Equal on every device.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

struct PhiloxWords {
  u32 words[4];
};

RB_FN u32 philox_high_product(u32 a, u32 b) {
  return static_cast<u32>((static_cast<u64>(a) * b) >> 32);
}

RB_FN PhiloxWords philox4x32_10(PhiloxWords counter, u32 key0, u32 key1) {
  const u32 multiplier0 = 0xD2511F53u;
  const u32 multiplier1 = 0xCD9E8D57u;
  u32 c0 = counter.words[0], c1 = counter.words[1], c2 = counter.words[2], c3 = counter.words[3];
  for (int round = 0; round < 10; ++round) {
    const u32 high0 = philox_high_product(multiplier0, c0);
    const u32 high1 = philox_high_product(multiplier1, c2);
    const u32 low0 = multiplier0 * c0;
    const u32 low1 = multiplier1 * c2;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9u;  // golden ratio
    key1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return PhiloxWords{{c0, c1, c2, c3}};
}

// The 128 bits of one element: counter = index, key = seed, low words first.
RB_FN PhiloxWords philox_element(u64 seed, u64 index) {
  const PhiloxWords counter = {{static_cast<u32>(index), static_cast<u32>(index >> 32), 0, 0}};
  return philox4x32_10(counter, static_cast<u32>(seed), static_cast<u32>(seed >> 32));
}

}  // namespace shared
}  // namespace rbee
