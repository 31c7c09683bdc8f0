#pragma once
// The tokens of the vocabulary that may come next.

#include <cstdint>
#include <span>

namespace rbee::engine {

// Does not own its bits.
struct TokenMask {
  std::span<const uint64_t> bits;  // token i is bit i % 64 of word i / 64; empty: all are allowed
  int64_t count = 0;               // allowed tokens, unless all are

  bool all() const { return bits.empty(); }
  bool has(int32_t id) const {
    return all() ||
           ((bits[static_cast<size_t>(id) / 64] >> (static_cast<size_t>(id) % 64)) & 1) != 0;
  }
};

}  // namespace rbee::engine
