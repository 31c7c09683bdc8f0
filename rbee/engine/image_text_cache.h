#pragma once
// The states of the last prompts: a prompt that comes again, with another seed or another size,
// needs no text encoder, which may have left the device.

#include <cstdint>
#include <functional>
#include <vector>

#include "rbee/engine/image_text.h"

namespace rbee::engine {

class PromptCache {
 public:
  // Keeps the states of the last `limit` requests' texts, a few MiB for each text.
  explicit PromptCache(size_t limit = 8) : limit_(limit) {}

  // What `encode` gave for the same texts with the request's rule and clip_skip, or gives now.
  PromptStates get(const PromptTexts& texts, const ImageRequest& request,
                   const std::function<PromptStates()>& encode);
  // For text encoders that have changed.
  void clear() { entries_.clear(); }

 private:
  struct Key {
    PromptTexts texts;
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
