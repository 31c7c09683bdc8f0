#include "rbee/engine/image_text_cache.h"

#include <algorithm>

namespace rbee::engine {

PromptStates PromptCache::get(const PromptTexts& texts, const ImageRequest& request,
                              const std::function<PromptStates()>& encode) {
  Key key{.texts = texts, .rule = request.prompt_rule, .clip_skip = request.clip_skip};
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found != entries_.end()) {
    std::rotate(found, found + 1, entries_.end());
    return entries_.back().states;
  }
  PromptStates states = encode();
  if (entries_.size() >= limit_) entries_.erase(entries_.begin());
  entries_.push_back({std::move(key), states});
  return states;
}

}  // namespace rbee::engine
