#pragma once
// Grammars as trees. All notations (GBNF, regular expressions, JSON schemas) become these.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::grammar {

// Code points low to high.
struct CharRange {
  char32_t low;
  char32_t high;
};

class TextSet;
class TextLengths;
struct LookAhead;
struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

inline constexpr int64_t kUnlimited = -1;

struct Expr {
  enum class Kind : uint8_t {
    literal,
    chars,
    tokens,
    rule,
    sequence,
    choice,
    repeat,
    texts,
    ahead,
    mark,
    behind,
    counted
  };
  Kind kind = Kind::sequence;
  std::string bytes;  // literal
  // chars: one character of these, in UTF-8; tokens: one token of these ids. In order, apart.
  std::vector<CharRange> ranges;
  int32_t rule = 0;            // index into Grammar::rules; of counted too, see counters.h
  std::vector<ExprPtr> parts;  // of sequence and choice; one of repeat
  int64_t min = 0;             // of repeat and counted; of texts with lengths, in characters
  int64_t max = kUnlimited;
  std::shared_ptr<const TextSet> set;          // of texts
  std::shared_ptr<const TextLengths> lengths;  // of texts; null: of any length
  // Only inside a TextSet: ahead, mark (notes whether the last character is a word character) and
  // behind (matches if that was noted).
  std::shared_ptr<const LookAhead> ahead;
  bool word = false;  // of mark and behind
};

ExprPtr literal(std::string bytes);
ExprPtr chars(std::vector<CharRange> ranges);
// Every character but those of the ranges.
ExprPtr chars_except(std::vector<CharRange> ranges);
// One token of these ids, whatever its text is.
ExprPtr tokens(std::vector<CharRange> ids);
ExprPtr rule(int32_t index);
ExprPtr sequence(std::vector<ExprPtr> parts);  // none: the empty text
ExprPtr choice(std::vector<ExprPtr> parts);    // no parts: nothing matches
// max: kUnlimited, or at least min.
ExprPtr repeat(ExprPtr part, int64_t min, int64_t max);
ExprPtr optional(ExprPtr part);

// All Unicode scalar values that are in none of the ranges, in order.
std::vector<CharRange> complement(std::vector<CharRange> ranges);

struct Rule {
  std::string name;
  ExprPtr body;
  bool never_empty = false;  // the rule excludes the empty text, even if its body has it
};

struct Grammar {
  std::vector<Rule> rules;
  int32_t root = 0;
};

// Adds the rules of `from`, and gives the expression that stands for it.
ExprPtr embed(Grammar& into, const Grammar& from);
// Any text up to and including the first `marker` (UTF-8, not empty), and then `after`.
// MarkerOr::end also allows any text without the marker.
enum class MarkerOr : uint8_t { nothing, end };
ExprPtr text_until(Grammar& into, std::string_view marker, ExprPtr after, MarkerOr or_what);

}  // namespace rbee::grammar
