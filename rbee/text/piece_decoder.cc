#include "rbee/text/piece_decoder.h"

#include <array>
#include <memory>
#include <utility>

#include "rbee/text/byte_alphabet.h"
#include "rbee/text/model.h"

namespace rbee::text {
namespace {

void replace_all(std::string& text, std::string_view pattern, std::string_view content) {
  if (pattern.empty()) return;
  const size_t before = text.size();
  for (size_t at = text.find(pattern); at != text.npos;
       at = text.find(pattern, at + content.size())) {
    text.replace(at, pattern.size(), content);
    check_growth(before, text.size());
  }
}

// BERT's rules for English, in their order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kCleanup{{
    {" .", "."},
    {" ?", "?"},
    {" !", "!"},
    {" ,", ","},
    {" ' ", "'"},
    {" n't", "n't"},
    {" 'm", "'m"},
    {" do not", " don't"},
    {" 's", "'s"},
    {" 've", "'ve"},
    {" 're", "'re"},
}};

}  // namespace

PieceDecoder::Step letters_to_bytes() {
  return [](std::string& token) {
    if (auto bytes = from_alphabet(token)) token = std::move(*bytes);
  };
}

PieceDecoder::Step byte_fallback() {
  return [](std::string& token) {
    const int byte = byte_of_token(token);
    if (byte >= 0) token.assign(1, static_cast<char>(byte));
  };
}

PieceDecoder::Step replace_in_piece(std::string pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](std::string& token) {
    replace_all(token, pattern, content);
  };
}

PieceDecoder::Step replace_in_piece(Regex pattern, std::string content) {
  // Steps are copied with their function; the compiled pattern is not.
  auto shared = std::make_shared<const Regex>(std::move(pattern));
  return [shared = std::move(shared), content = std::move(content)](std::string& token) {
    std::string out;
    size_t from = 0;
    shared->each_match(token, [&](size_t begin, size_t end) {
      out.append(token, from, begin - from).append(content);
      from = end;
      check_growth(token.size(), out.size());
    });
    if (from > 0) token = out.append(token, from);
  };
}

PieceDecoder::Step strip_piece(std::string content, int start, int stop) {
  return [content = std::move(content), start, stop](std::string& token) {
    if (content.empty()) return;
    for (int i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
    for (int i = 0; i < stop && token.ends_with(content); ++i) {
      token.resize(token.size() - content.size());
    }
  };
}

PieceDecoder::Step join_word_pieces(std::string prefix, bool cleanup) {
  return [prefix = std::move(prefix), cleanup](std::string& token) {
    if (token.starts_with(prefix)) {
      token.erase(0, prefix.size());
    } else {
      token.insert(0, 1, ' ');
    }
    if (!cleanup) return;
    for (const auto& [pattern, content] : kCleanup) replace_all(token, pattern, content);
  };
}

}  // namespace rbee::text
