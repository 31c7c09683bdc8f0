#include "rbee/text/pre_tokenizer.h"

#include <utility>

#include "rbee/text/byte_alphabet.h"
#include "rbee/text/char_class.h"
#include "rbee/text/growth.h"
#include "rbee/text/scanners.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

struct Part {
  size_t begin, end;
  bool match;
};

template <typename Function>
class Made final : public PreTokenizer {
 public:
  explicit Made(Function function) : function_(std::move(function)) {}
  void apply(Words& words) const override { function_(words); }

 private:
  Function function_;
};
template <typename Function>
PreTokenizerPtr make(Function function) {
  return std::make_unique<Made<Function>>(std::move(function));
}

size_t bytes_of(const Words& words) {
  size_t bytes = 0;
  for (const std::string_view word : words.items) bytes += word.size();
  return bytes;
}

// Replaces every word by the words that cut(word, out) appends.
template <typename Cut>
void cut_words(Words& words, const Cut& cut) {
  std::vector<std::string_view> out;
  out.reserve(words.items.size());
  for (const std::string_view word : words.items) cut(word, out);
  words.at_start = words.at_start && !out.empty() && !words.items.empty() &&
                   out[0].data() == words.items[0].data();
  words.items = std::move(out);
}

// Replaces every word by rewrite(word, first), a string of its own; `first`: at the text's start.
template <typename Rewrite>
void rewrite_words(Words& words, const Rewrite& rewrite) {
  const size_t before = bytes_of(words);
  size_t after = 0;
  for (size_t i = 0; i < words.items.size(); ++i) {
    words.items[i] =
        words.rewritten->emplace_back(rewrite(words.items[i], i == 0 && words.at_start));
    after += words.items[i].size();
    check_growth(before, after);
  }
}

std::vector<Part> joined(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> out;
  const auto add = [&](const Part& part, bool join) {
    if (join && !out.empty()) {
      out.back().begin = std::min(out.back().begin, part.begin);
      out.back().end = std::max(out.back().end, part.end);
    } else {
      out.push_back(part);
    }
  };
  bool before = false;  // kind of the part next to this one, in the direction of travel
  if (behavior == SplitBehavior::merged_with_next) {
    for (size_t i = parts.size(); i-- > 0;) {
      add(parts[i], parts[i].match && !before);
      before = parts[i].match;
    }
    return {out.rbegin(), out.rend()};
  }
  for (const Part& part : parts) {
    add(part, behavior == SplitBehavior::contiguous ? part.match == before : part.match && !before);
    before = part.match;
  }
  return out;
}

// Appends the words that `parts` of `word` give; they cover it without gaps.
void append_parts(std::string_view word, const std::vector<Part>& parts, SplitBehavior behavior,
                  std::vector<std::string_view>& out) {
  const auto append = [&](const Part& part) {
    if (part.end > part.begin) out.push_back(word.substr(part.begin, part.end - part.begin));
  };
  if (behavior == SplitBehavior::removed) {
    for (const Part& part : parts) {
      if (!part.match) append(part);
    }
  } else if (behavior == SplitBehavior::isolated) {
    for (const Part& part : parts) append(part);
  } else {
    for (const Part& part : joined(parts, behavior)) append(part);
  }
}

// Collects matches and the gaps between them.
class PartList {
 public:
  explicit PartList(bool invert) : invert_(invert) {}
  void add_match(size_t begin, size_t end) {
    add_gap(begin);
    parts_.push_back({begin, end, !invert_});
    at_ = end;
  }
  const std::vector<Part>& finish(size_t size) {
    add_gap(size);
    return parts_;
  }

 private:
  void add_gap(size_t end) {
    if (end > at_) parts_.push_back({at_, end, invert_});
  }
  bool invert_;
  size_t at_ = 0;
  std::vector<Part> parts_;
};

void split_at(std::string_view word, std::string_view text, SplitBehavior behavior, bool invert,
              std::vector<std::string_view>& out) {
  PartList parts(invert);
  size_t at = text.empty() ? word.npos : word.find(text);
  for (; at != word.npos; at = word.find(text, at + text.size())) {
    parts.add_match(at, at + text.size());
  }
  append_parts(word, parts.finish(word.size()), behavior, out);
}

// Every character that is_match(code) takes is a match of its own.
template <typename IsMatch>
PreTokenizerPtr character_split(SplitBehavior behavior, IsMatch is_match) {
  return make([behavior, is_match](Words& words) {
    cut_words(words, [&](std::string_view word, std::vector<std::string_view>& out) {
      PartList parts(false);
      for (size_t at = 0; at < word.size(); at += utf8_length(word[at])) {
        if (is_match(utf8_at(word, at))) parts.add_match(at, at + utf8_length(word[at]));
      }
      append_parts(word, parts.finish(word.size()), behavior, out);
    });
  });
}

}  // namespace

PreTokenizerPtr split_pre_tokenizer(std::string text, SplitBehavior behavior, bool invert) {
  return make([text = std::move(text), behavior, invert](Words& words) {
    cut_words(words, [&](std::string_view word, std::vector<std::string_view>& out) {
      split_at(word, text, behavior, invert, out);
    });
  });
}

PreTokenizerPtr split_pre_tokenizer(Regex pattern, SplitBehavior behavior, bool invert) {
  return make([pattern = std::move(pattern), behavior, invert](Words& words) {
    cut_words(words, [&](std::string_view word, std::vector<std::string_view>& out) {
      PartList parts(invert);
      pattern.each_match(word, [&](size_t begin, size_t end) { parts.add_match(begin, end); });
      append_parts(word, parts.finish(word.size()), behavior, out);
    });
  });
}

PreTokenizerPtr regex_pre_tokenizer(std::string_view pattern, SplitBehavior behavior, bool invert,
                                    std::string_view where) {
  const ScanRules* rules = known_pattern(pattern);
  // The known patterns leave no gaps, so that these two mean the same.
  const bool all_words =
      (behavior == SplitBehavior::isolated) || (behavior == SplitBehavior::removed && invert);
  if (rules == nullptr || !all_words) {
    return split_pre_tokenizer(Regex(pattern, where), behavior, invert);
  }
  return make([rules](Words& words) {
    cut_words(words, [&](std::string_view word, std::vector<std::string_view>& out) {
      scan(*rules, word, out);
    });
  });
}

PreTokenizerPtr byte_level_pre_tokenizer(ByteLevelOptions options) {
  return make([options](Words& words) {
    if (options.add_prefix_space) {
      rewrite_words(words, [](std::string_view word, bool) {
        return word.starts_with(' ') ? std::string(word) : " " + std::string(word);
      });
    }
    if (options.use_regex) {
      cut_words(words, [](std::string_view word, std::vector<std::string_view>& out) {
        scan(gpt2_rules(), word, out);
      });
    }
    if (options.to_letters) {
      rewrite_words(words, [](std::string_view word, bool) { return to_alphabet(word); });
    }
  });
}

PreTokenizerPtr metaspace_pre_tokenizer(std::string replacement, PrependScheme scheme, bool split) {
  return make([replacement = std::move(replacement), scheme, split](Words& words) {
    rewrite_words(words, [&](std::string_view word, bool first) {
      std::string out;
      out.reserve(word.size() + word.size() / 2 + replacement.size());
      const bool prepend =
          scheme == PrependScheme::always || (scheme == PrependScheme::first && first);
      const bool has_mark = word.starts_with(' ') || word.starts_with(replacement);
      if (prepend && !has_mark) out += replacement;
      for (const char c : word) {
        if (c == ' ') {
          out += replacement;
        } else {
          out.push_back(c);
        }
      }
      return out;
    });
    if (!split) return;
    cut_words(words, [&](std::string_view word, std::vector<std::string_view>& out) {
      split_at(word, replacement, SplitBehavior::merged_with_next, false, out);
    });
  });
}

PreTokenizerPtr digits_pre_tokenizer(bool individual) {
  const CharClasses& classes = CharClasses::get();
  return character_split(individual ? SplitBehavior::isolated : SplitBehavior::contiguous,
                         [&classes](char32_t code) { return (classes[code] & kNumber) != 0; });
}

PreTokenizerPtr punctuation_pre_tokenizer(SplitBehavior behavior) {
  const CharClasses& classes = CharClasses::get();
  return character_split(behavior, [&classes](char32_t code) {
    return is_ascii_punctuation(code) || (classes[code] & kPunctuation) != 0;
  });
}

PreTokenizerPtr whitespace_pre_tokenizer() {
  const CharClasses& classes = CharClasses::get();
  return make([&classes](Words& words) {
    cut_words(words, [&](std::string_view word, std::vector<std::string_view>& out) {
      const auto kind = [&](size_t at) {
        return classes[utf8_at(word, at)] & (kSpaceBit | kWordBit);
      };
      for (size_t begin = 0, end = 0; begin < word.size(); begin = end) {
        while (end < word.size() && kind(end) == kind(begin)) end += utf8_length(word[end]);
        if (kind(begin) != kSpaceBit) out.push_back(word.substr(begin, end - begin));
      }
    });
  });
}

PreTokenizerPtr whitespace_split_pre_tokenizer() {
  const CharClasses& classes = CharClasses::get();
  return character_split(SplitBehavior::removed,
                         [&classes](char32_t code) { return (classes[code] & kSpaceBit) != 0; });
}

PreTokenizerPtr bert_pre_tokenizer() {
  std::vector<PreTokenizerPtr> parts;
  parts.push_back(whitespace_split_pre_tokenizer());
  parts.push_back(punctuation_pre_tokenizer(SplitBehavior::isolated));
  return sequence_pre_tokenizer(std::move(parts));
}

PreTokenizerPtr sequence_pre_tokenizer(std::vector<PreTokenizerPtr> parts) {
  return make([parts = std::move(parts)](Words& words) {
    const size_t before = bytes_of(words);
    for (const PreTokenizerPtr& part : parts) {
      part->apply(words);
      check_growth(before, bytes_of(words));
    }
  });
}

}  // namespace rbee::text
