#include "rbee/engine/image/text_cache.h"

#include <algorithm>

namespace rbee::engine {
namespace {

int64_t bytes_of(const std::vector<models::TextStates>& all) {
  int64_t out = 0;
  for (const models::TextStates& states : all) {
    for (const Tensor* part : {&states.context, &states.pooled}) {
      if (part->defined()) out += part->bytes();
    }
  }
  return out;
}

}  // namespace

PromptStates PromptCache::get(const PromptTexts& texts, const ImageRequest& request,
                              const std::function<PromptStates()>& encode) {
  Key key{.texts = texts,
          .rule = request.prompt_rule,
          .emphasis = request.emphasis,
          .clip_skip = request.clip_skip};
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found != entries_.end()) {
    std::rotate(found, found + 1, entries_.end());
    return entries_.back().states;
  }
  PromptStates states = encode();
  const int64_t bytes = bytes_of(states.positive) + bytes_of(states.negative);
  entries_.push_back({std::move(key), states, bytes});
  bytes_ += bytes;
  while (entries_.size() > limits_.requests || bytes_ > limits_.bytes) {
    bytes_ -= entries_.front().bytes;
    entries_.erase(entries_.begin());
  }
  return states;
}

}  // namespace rbee::engine
