#pragma once

#include <cstdint>
#include <vector>

#include "rbee/engine/kv_blocks.h"

namespace rbee::engine {

// An adapter in a slot of the model's layers.
struct LoraUse {
  int32_t slot = 0;
  float scale = 0;
};

// Tokens of one sequence and how far they are in the cache.
class Sequence {
 public:
  explicit Sequence(KvBlockPool& pool) : kv(pool) {}

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }

  std::vector<int32_t> tokens;  // prompt, then generated
  int64_t cached = 0;           // leading tokens whose keys and values are in the cache
  std::vector<LoraUse> lora;    // that its tokens take
  KvTable kv;
};

}  // namespace rbee::engine
