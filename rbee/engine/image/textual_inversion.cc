#include "rbee/engine/image/textual_inversion.h"

#include <algorithm>
#include <cctype>

namespace rbee::engine {
namespace {

constexpr std::string_view kComfyPrefix = "embedding:";

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_';
}

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// Whether text[at - 1] and text[at] belong to one word.
bool joins(std::string_view text, size_t at) {
  return at > 0 && at < text.size() && is_word(text[at - 1]) && is_word(text[at]);
}

}  // namespace

EmbeddedWords::EmbeddedWords(std::span<const models::TextEmbedding> embeddings, size_t encoder,
                             text::TokenId first_id)
    : first_id_(first_id) {
  text::TokenId next = first_id;
  for (const models::TextEmbedding& embedding : embeddings) {
    const std::vector<float>& vectors = embedding.vectors.at(encoder);
    if (vectors.empty() || embedding.word.empty()) continue;
    words_.push_back({.text = lowered(embedding.word),
                      .first = next,
                      .count = embedding.count,
                      .vectors = vectors.data(),
                      .width = vectors.size() / static_cast<size_t>(embedding.count)});
    next += static_cast<text::TokenId>(embedding.count);
  }
  std::ranges::stable_sort(words_, std::greater{}, [](const Word& w) { return w.text.size(); });
}

const EmbeddedWords::Word* EmbeddedWords::at(std::string_view lower, size_t place) const {
  if (joins(lower, place)) return nullptr;
  for (const Word& word : words_) {
    const bool same = lower.substr(place).starts_with(word.text);
    if (same && !joins(lower, place + word.text.size())) return &word;
  }
  return nullptr;
}

std::vector<text::TokenId> EmbeddedWords::encode(std::string_view text,
                                                 const Encode& encode) const {
  if (words_.empty()) return encode(text);
  const std::string lower = lowered(text);
  std::vector<text::TokenId> out;
  size_t begin = 0;  // of what is not encoded yet
  const auto flush = [&](size_t end) {
    if (end == begin) return;
    const std::vector<text::TokenId> ids = encode(text.substr(begin, end - begin));
    out.insert(out.end(), ids.begin(), ids.end());
  };
  for (size_t place = 0; place < lower.size();) {
    const Word* word = at(lower, place);
    if (word == nullptr) {
      ++place;
      continue;
    }
    const bool prefixed =
        std::string_view(lower).substr(begin, place - begin).ends_with(kComfyPrefix);
    flush(place - (prefixed ? kComfyPrefix.size() : 0));
    for (int64_t i = 0; i < word->count; ++i) {
      out.push_back(word->first + static_cast<text::TokenId>(i));
    }
    begin = place += word->text.size();
  }
  flush(lower.size());
  return out;
}

size_t EmbeddedWords::vectors_from(text::TokenId id) const {
  const auto found = std::ranges::find(words_, id, &Word::first);
  return found == words_.end() ? 1 : static_cast<size_t>(found->count);
}

std::vector<models::TokenVector> EmbeddedWords::take(std::span<text::TokenId> ids,
                                                     text::TokenId stand_in) const {
  std::vector<models::TokenVector> out;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < first_id_) continue;
    const auto found = std::ranges::find_if(words_, [&](const Word& word) {
      return ids[i] >= word.first && ids[i] < word.first + word.count;
    });
    if (found == words_.end()) continue;  // the encoder names an id outside the vocabulary
    const auto row = static_cast<size_t>(ids[i] - found->first);
    out.push_back({static_cast<int64_t>(i), {found->vectors + row * found->width, found->width}});
    ids[i] = stand_in;
  }
  return out;
}

}  // namespace rbee::engine
