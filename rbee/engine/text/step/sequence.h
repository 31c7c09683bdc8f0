#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "rbee/engine/text/prompt/picture_cache.h"
#include "rbee/engine/text/step/kv_blocks.h"

namespace rbee::engine {

// An adapter in a slot of the model's layers.
struct LoraSlot {
  int32_t slot = 0;
  float scale = 0;
};

// Tokens that a picture stands in the place of. They see each other, so a step has all of them that
// are not in the cache, or none.
struct PictureSpan {
  int64_t first = 0;
  int64_t count = 0;
  std::shared_ptr<SeenPicture> picture;

  int64_t end() const { return first + count; }
};

// Tokens of one sequence and how far they are in the cache.
class Sequence {
 public:
  explicit Sequence(KvBlockPool& pool) : kv(pool) {}

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }

  // The first `count` tokens as KvTable compares them: of a picture, its key.
  std::vector<int32_t> keys(int64_t count) const {
    std::vector<int32_t> out(tokens.begin(), tokens.begin() + count);
    for (const PictureSpan& span : pictures) {
      const auto begin = std::min(span.first, count), end = std::min(span.end(), count);
      std::fill(out.begin() + begin, out.begin() + end, span.picture->key);
    }
    return out;
  }

  // The picture that tokens [.., end) would cut; null: none.
  const PictureSpan* cut_at(int64_t end) const {
    const auto found = std::ranges::find_if(
        pictures, [&](const PictureSpan& span) { return span.first < end && end < span.end(); });
    return found == pictures.end() ? nullptr : &*found;
  }

  // The first picture with tokens to evaluate that the tower has not looked at; null: none.
  const PictureSpan* unseen() const {
    const auto found = std::ranges::find_if(pictures, [&](const PictureSpan& span) {
      return span.end() > cached && !span.picture->seen();
    });
    return found == pictures.end() ? nullptr : &*found;
  }
  // Tokens behind the cached ones that can be evaluated: those in front of that picture.
  int64_t ready() const {
    const PictureSpan* span = unseen();
    return (span == nullptr ? length() : std::max(span->first, cached)) - cached;
  }

  // Whether somebody waits for logits of its prompt.
  bool scores() const { return scored < score_end; }

  std::vector<int32_t> tokens;        // prompt, then generated
  std::vector<PictureSpan> pictures;  // of the prompt, in order
  int64_t cached = 0;                 // leading tokens whose keys and values are in the cache
  int64_t draft_cached = 0;           // the same of a draft model's cache, in the same blocks
  // Logits behind the tokens [scored, score_end) are wanted, whatever the cache holds.
  int64_t scored = 0, score_end = 0;
  std::vector<LoraSlot> lora;  // that its tokens take
  KvTable kv;
};

}  // namespace rbee::engine
