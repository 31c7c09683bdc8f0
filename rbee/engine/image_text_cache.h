#pragma once
// The states of the last prompts: a prompt that comes again, with another seed or another size,
// needs no text encoder, which may have left the device.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rbee/engine/image_text.h"

namespace rbee::engine {

class PromptCache {
 public:
  // Keeps the states of the last `limit` pairs of prompts, a few MiB each.
  explicit PromptCache(size_t limit = 8) : limit_(limit) {}

  // What `encode` gave for the same prompts, or gives now.
  PromptStates get(const ImageRequest& request, const std::function<PromptStates()>& encode);
  // For text encoders that have changed.
  void clear() { entries_.clear(); }

 private:
  struct Key {
    std::string prompt, negative_prompt;
    PromptRule rule;
    int32_t clip_skip;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    PromptStates states;
  };

  size_t limit_;
  std::vector<Entry> entries_;  // the one used last at the end
};

}  // namespace rbee::engine
