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

// Tokens that stand for a picture. They attend to each other, so a step evaluates all of them that
// are not cached, or none.
struct PictureSpan {
  int64_t first = 0;
  int64_t count = 0;
  std::shared_ptr<SeenPicture> picture;

  int64_t end() const { return first + count; }
};

// The tokens of one sequence, and how many of them are in the cache.
class Sequence {
 public:
  explicit Sequence(KvBlockPool& pool) : kv(pool) {}

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }

  // The first `count` tokens as KvTable compares them; a picture's tokens are its key.
  std::vector<int32_t> keys(int64_t count) const {
    std::vector<int32_t> out(tokens.begin(), tokens.begin() + count);
    for (const PictureSpan& span : pictures) {
      const auto begin = std::min(span.first, count), end = std::min(span.end(), count);
      std::fill(out.begin() + begin, out.begin() + end, span.picture->key);
    }
    return out;
  }

  // The picture that a step up to token `end` would cut; null: none.
  const PictureSpan* cut_at(int64_t end) const {
    const auto found = std::ranges::find_if(
        pictures, [&](const PictureSpan& span) { return span.first < end && end < span.end(); });
    return found == pictures.end() ? nullptr : &*found;
  }

  // The first picture with uncached tokens that the tower has not seen; null: none.
  const PictureSpan* unseen() const {
    const auto found = std::ranges::find_if(pictures, [&](const PictureSpan& span) {
      return span.end() > cached && !span.picture->seen();
    });
    return found == pictures.end() ? nullptr : &*found;
  }
  // Uncached tokens that can be evaluated: those before that picture.
  int64_t ready() const {
    const PictureSpan* span = unseen();
    return (span == nullptr ? length() : std::max(span->first, cached)) - cached;
  }

  // Whether logits of its prompt are still wanted.
  bool scores() const { return scored < score_end; }

  std::vector<int32_t> tokens;        // prompt, then generated
  std::vector<PictureSpan> pictures;  // of the prompt, in order
  int64_t cached = 0;                 // leading tokens whose keys and values are in the cache
  int64_t draft_cached = 0;           // the same for a draft model's cache, in the same blocks
  // Logits after the tokens [scored, score_end) are wanted, even if the cache holds those tokens.
  int64_t scored = 0, score_end = 0;
  std::vector<LoraSlot> lora;  // adapters for its tokens
  KvTable kv;
};

}  // namespace rbee::engine
