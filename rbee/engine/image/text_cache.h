#pragma once
// Caches the states of the last prompts: a prompt with another seed or size needs no text encoder,
// which may have left the device.

#include <cstdint>
#include <functional>
#include <vector>

#include "rbee/engine/image/text.h"

namespace rbee::engine {

class PromptCache {
 public:
  // Number of cached requests, with a few MiB for each text, and bytes of the states.
  struct Limits {
    size_t requests = 8;
    int64_t bytes = int64_t{256} << 20;
  };
  explicit PromptCache(const Limits& limits) : limits_(limits) {}

  // The cached states for these texts and the request's rule, emphasis and clip_skip, or else the
  // result of `encode`.
  PromptStates get(const PromptTexts& texts, const ImageRequest& request,
                   const std::function<PromptStates()>& encode);
  // For a change of text encoders, and when memory runs out.
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
  std::vector<Entry> entries_;  // last used at the end
};

}  // namespace rbee::engine
