#pragma once
// The states of the last prompts: a prompt that comes again, with another seed or another size,
// needs no text encoder, which may have left the device.

#include <cstdint>
#include <functional>
#include <vector>

#include "rbee/engine/image/text.h"

namespace rbee::engine {

class PromptCache {
 public:
  // Of requests whose texts' states are kept, a few MiB for each text, and of the states.
  struct Limits {
    size_t requests = 8;
    int64_t bytes = int64_t{256} << 20;
  };
  explicit PromptCache(const Limits& limits) : limits_(limits) {}

  // What `encode` gave for the same texts with the request's rule, emphasis and clip_skip, or gives
  // now.
  PromptStates get(const PromptTexts& texts, const ImageRequest& request,
                   const std::function<PromptStates()>& encode);
  // For text encoders that have changed, and when memory runs out.
  void clear() {
    entries_.clear();
    bytes_ = 0;
  }

 private:
  struct Key {
    PromptTexts texts;
    PromptRule rule;
    Emphasis emphasis;
    int32_t clip_skip;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    PromptStates states;
    int64_t bytes;
  };

  const Limits limits_;
  int64_t bytes_ = 0;           // of the entries
  std::vector<Entry> entries_;  // the one used last at the end
};

}  // namespace rbee::engine
