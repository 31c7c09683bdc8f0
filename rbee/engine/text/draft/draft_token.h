#pragma once
// A token that is proposed for a place of a text before the model is asked.

#include <cstdint>
#include <vector>

namespace rbee::engine {

struct TokenProbability {
  int32_t id;
  float probability;
};

struct DraftToken {
  int32_t id = 0;
  // The distribution that it was drawn from, sorted by id; ids without probability may be missing.
  // Empty: it was not drawn.
  std::vector<TokenProbability> among = {};
};

}  // namespace rbee::engine
