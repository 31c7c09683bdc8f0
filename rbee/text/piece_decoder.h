#pragma once
// Gives the bytes of each token (the "decoder" of tokenizer.json), so that text can be sent while
// it is generated.

#include <functional>
#include <string>
#include <vector>

#include "rbee/text/growth.h"
#include "rbee/text/regex.h"

namespace rbee::text {

class PieceDecoder {
 public:
  using Step = std::function<void(std::string& token)>;
  // Removes every space at the start of the first token.
  static constexpr int kAllOfFirstToken = -1;

  void add(Step step) { steps_.push_back(std::move(step)); }
  void drop_leading_spaces(int count) { leading_ = count; }

  std::string apply(std::string token) const {
    const size_t before = token.size();
    for (const Step& step : steps_) {
      step(token);
      check_growth(before, token.size());
    }
    return token;
  }
  int leading_spaces_dropped() const { return leading_; }

 private:
  std::vector<Step> steps_;
  int leading_ = 0;
};

PieceDecoder::Step letters_to_bytes();  // GPT-2's alphabet; a token with other letters stays
PieceDecoder::Step byte_fallback();     // "<0x0A>" to its byte
PieceDecoder::Step replace_in_piece(std::string pattern, std::string content);
PieceDecoder::Step replace_in_piece(Regex pattern, std::string content);
// Removes up to `start` and `stop` copies of `content` from the two ends.
PieceDecoder::Step strip_piece(std::string content, int start, int stop);
// A token without `prefix` starts a new word. cleanup: no spaces before punctuation and
// contractions.
PieceDecoder::Step join_word_pieces(std::string prefix, bool cleanup);

}  // namespace rbee::text
