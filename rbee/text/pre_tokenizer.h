#pragma once
// Splits a normalised text into the words that the model reads (the "pre_tokenizer" of
// tokenizer.json).

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/regex.h"

namespace rbee::text {

// Words of one piece of text, in order.
struct Words {
  std::vector<std::string_view> items;
  bool at_start = true;                // the first word is at the beginning of the whole text
  std::deque<std::string>* rewritten;  // owns words that are not parts of the text
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
};

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

// What happens to matches of a pattern.
enum class SplitBehavior : uint8_t {
  removed,
  isolated,  // words of their own
  merged_with_previous,
  merged_with_next,
  contiguous,  // as isolated, neighbours joined
};

// invert: the text between matches counts as the match.
PreTokenizerPtr split_pre_tokenizer(std::string text, SplitBehavior behavior, bool invert);
PreTokenizerPtr split_pre_tokenizer(Regex pattern, SplitBehavior behavior, bool invert);
// Uses the scanner of a known pattern (scanners.h). Error messages begin with `where`.
PreTokenizerPtr regex_pre_tokenizer(std::string_view pattern, SplitBehavior behavior, bool invert,
                                    std::string_view where);

struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;   // GPT-2's pattern
  bool to_letters = true;  // map bytes to the alphabet; false: the model takes the bytes
};
PreTokenizerPtr byte_level_pre_tokenizer(ByteLevelOptions options);

enum class PrependScheme : uint8_t { always, first, never };
// Spaces become `replacement` (one character); if `split`, it starts a new word.
PreTokenizerPtr metaspace_pre_tokenizer(std::string replacement, PrependScheme scheme, bool split);

PreTokenizerPtr digits_pre_tokenizer(bool individual);
PreTokenizerPtr punctuation_pre_tokenizer(SplitBehavior behavior);
PreTokenizerPtr whitespace_pre_tokenizer();        // \w+ and [^\w\s]+
PreTokenizerPtr whitespace_split_pre_tokenizer();  // at white space only
PreTokenizerPtr bert_pre_tokenizer();
PreTokenizerPtr sequence_pre_tokenizer(std::vector<PreTokenizerPtr> parts);

}  // namespace rbee::text
