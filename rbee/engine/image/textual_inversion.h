#pragma once
// Textual inversion: words in prompts become tokens beyond the vocabulary, and encoders get vectors
// for these.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "rbee/models/image/embedding.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

class EmbeddedWords {
 public:
  EmbeddedWords() = default;
  // For one encoder; `first_id`: the vocabulary's size. The embeddings must outlive this. Words
  // without vectors for the encoder stay text.
  EmbeddedWords(std::span<const models::TextEmbedding> embeddings, size_t encoder,
                text::TokenId first_id);

  using Encode = std::function<std::vector<text::TokenId>(std::string_view)>;
  // The ids of a text. A word that stands alone, in any case and with or without ComfyUI's
  // "embedding:", becomes its vectors' ids. If several words match, the longest counts.
  std::vector<text::TokenId> encode(std::string_view text, const Encode& encode) const;

  // The number of vectors of the word whose first id this is; 1 for every other id.
  size_t vectors_from(text::TokenId id) const;

  // Replaces ids beyond the vocabulary by `stand_in` and returns the vectors for these places.
  std::vector<models::TokenVector> take(std::span<text::TokenId> ids, text::TokenId stand_in) const;

 private:
  struct Word {
    std::string text;  // lower case
    text::TokenId first = 0;
    int64_t count = 0;
    const float* vectors = nullptr;
    size_t width = 0;
  };
  const Word* at(std::string_view lower, size_t place) const;

  text::TokenId first_id_ = 0;
  std::vector<Word> words_;  // longest first
};

}  // namespace rbee::engine
