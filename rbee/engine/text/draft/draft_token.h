#pragma once
// A token proposed for a place in a text before the model has evaluated it.

#include <cstdint>
#include <vector>

namespace rbee::engine {

struct TokenProbability {
  int32_t id;
  float probability;
};

struct DraftToken {
  int32_t id = 0;
  // The distribution it was drawn from, sorted by id; ids of zero probability may be missing.
  // Empty: it was not drawn.
  std::vector<TokenProbability> among = {};
};

}  // namespace rbee::engine
