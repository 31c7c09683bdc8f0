#include "rbee/grammar/regex.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "rbee/grammar/look_ahead.h"
#include "rbee/grammar/pattern_reader.h"
#include "rbee/grammar/unicode_sets.h"

namespace rbee::grammar {
namespace {

using Ranges = std::vector<CharRange>;

constexpr int64_t kAheadWork = 10'000'000;  // steps for the automata of lookaheads
constexpr std::string_view kName = "looking ahead";

const Ranges kDigits{{'0', '9'}};
const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace{{'\t', '\r'}, {' ', ' '}};

// Whether a text of the expression can be empty, and whether one can have characters.
struct Width {
  bool empty, some;
};

Width width_of(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::literal:
      return {expr.bytes.empty(), !expr.bytes.empty()};
    case Expr::Kind::ahead:
    case Expr::Kind::mark:
    case Expr::Kind::behind:
      return {true, false};
    case Expr::Kind::repeat: {
      const Width part = width_of(*expr.parts.front());
      return {part.empty || expr.min == 0, part.some && expr.max != 0};
    }
    case Expr::Kind::sequence: {
      Width out{true, false};
      for (const ExprPtr& part : expr.parts) {
        const Width one = width_of(*part);
        out = {out.empty && one.empty, out.some || one.some};
      }
      return out;
    }
    case Expr::Kind::choice: {
      Width out{false, false};
      for (const ExprPtr& part : expr.parts) {
        const Width one = width_of(*part);
        out = {out.empty || one.empty, out.some || one.some};
      }
      return out;
    }
    default:
      return {false, true};
  }
}

bool is_nothing(const ExprPtr& expr) {
  return expr->kind == Expr::Kind::choice && expr->parts.empty();
}

// Like sequence() and choice(), without alternatives that match nothing.
ExprPtr joined(std::vector<ExprPtr> parts) {
  return std::ranges::any_of(parts, is_nothing) ? choice({}) : sequence(std::move(parts));
}

ExprPtr either(std::vector<ExprPtr> ways) {
  std::erase_if(ways, is_nothing);
  return choice(std::move(ways));
}

ExprPtr times(ExprPtr part, int64_t min, int64_t max) {
  if (is_nothing(part)) return min == 0 ? sequence({}) : part;
  return min == 1 && max == 1 ? part : repeat(std::move(part), min, max);
}

// Whether \b or \B is somewhere in it.
bool has_boundaries(std::string_view pattern) {
  for (size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    ++i;
    if (pattern[i] == 'b' || pattern[i] == 'B') return true;
  }
  return false;
}

class Parser {
 public:
  Parser(std::string_view where, std::string_view pattern, const CharWriter& writer, Match match)
      : reader_(where, pattern),
        writer_(writer),
        match_(match),
        marks_(match != Match::terminal && has_boundaries(pattern)),
        looks_ahead_(marks_) {}

  ExprPtr run() {
    const PatternReader begin = reader_;
    ExprPtr out = parse_all();
    if (match_ == Match::anywhere) {
      // If ^ holds, the part begins the text; else some character comes before it.
      ExprPtr behind = out;
      if (knows_begin_) {
        reader_ = begin;
        before_ = Before::some;
        behind = parse_all();
        out = either({out, joined({write(complement({})), any_text(), behind})});
      } else {
        out = joined({any_text(), behind});
      }
    }
    const bool made = out->kind == Expr::Kind::texts;
    return looks_ahead_ && !made ? TextSet(out, kName, ahead_work_).expr() : out;
  }

 private:
  struct Flags {
    bool ignore_case = false;
    bool dot_all = false;
  };
  // What the expression has read so far.
  enum class Before : uint8_t { nothing, some, unknown };

  ExprPtr parse_all() {
    ExprPtr out = parse_choice(0, match_ == Match::anywhere);
    if (!reader_.done()) reader_.refuse("unexpected )");
    return out;
  }

  // The automaton of many characters is made deterministic once: it may occur often.
  ExprPtr written(Ranges ranges) {
    if (!writer_) return chars(std::move(ranges));
    if (ranges.empty() || is_single(ranges)) return writer_(std::move(ranges));
    std::u32string key;
    for (const CharRange& range : ranges) key += {range.low, range.high};
    ExprPtr& known = written_[key];
    if (!known) known = TextSet(writer_(std::move(ranges)), kName, ahead_work_).expr();
    return known;
  }

  ExprPtr write(Ranges ranges) {
    if (!marks_) return written(std::move(ranges));
    std::vector<ExprPtr> ways;
    for (const bool word : {true, false}) {
      Ranges some = both_chars(ranges, word ? kWord : complement(kWord));
      if (!some.empty()) ways.push_back(sequence({written(std::move(some)), mark(word)}));
    }
    return choice(std::move(ways));
  }

  Ranges with_case(Ranges ranges) const {
    return flags_.ignore_case ? close_over_case(ranges) : ranges;
  }

  // more: any text may follow the alternatives.
  ExprPtr parse_choice(int depth, bool more) {
    if (depth > kMaxNesting) reader_.refuse("more than ", kMaxNesting, " groups in each other");
    const Before before = before_;
    const Flags flags = flags_;
    std::vector<ExprPtr> parts;
    do {
      before_ = before;
      parts.push_back(parse_sequence(depth, more));
    } while (reader_.skip("|"));
    flags_ = flags;
    return either(std::move(parts));
  }

  bool at_end_of_sequence() const {
    return reader_.done() || reader_.look() == '|' || reader_.look() == ')';
  }

  ExprPtr parse_sequence(int depth, bool more) {
    std::vector<ExprPtr> parts;
    bool only_aheads = depth == 0;
    bool begins = depth == 0 && match_ == Match::whole;  // all of the text is read here
    while (!at_end_of_sequence()) {
      if (skip_flags()) continue;
      if (reader_.skip("^") || reader_.skip("\\A")) {
        if (!begins_here()) parts.push_back(choice({}));
        begins |= only_aheads;
        continue;
      }
      if (reader_.skip("$") || reader_.skip("\\z") || reader_.skip("\\Z")) {
        if (more && at_end_of_sequence()) return whole(std::move(parts), begins);
        if (!ends_anyway(depth)) parts.push_back(end_of_text());
        continue;
      }
      in_front_ = only_aheads;
      parts.push_back(parse_repeated(depth));
      only_aheads = only_aheads && parts.back()->kind == Expr::Kind::ahead;
    }
    if (more) parts.push_back(any_text());
    return whole(std::move(parts), begins);
  }

  // joined(). begins: a leading lookahead applies to all that follows, and is combined
  // with that as sets.
  ExprPtr whole(std::vector<ExprPtr> parts, bool begins) {
    const auto rest = std::ranges::find_if_not(
        parts, [](const ExprPtr& part) { return part->kind == Expr::Kind::ahead; });
    const std::vector<ExprPtr> aheads(parts.begin(), rest);
    ExprPtr out = joined({rest, parts.end()});
    if (aheads.empty() || is_nothing(out)) return out;
    if (!begins || marks_) return joined(std::move(parts));
    TextSet set(out, kName, ahead_work_);
    for (const ExprPtr& part : aheads) set = TextSet::both(set, part->ahead->rest, ahead_work_);
    return set.expr();
  }

  ExprPtr any_text() { return repeat(write(complement({})), 0, kUnlimited); }

  // After ^: whether it holds.
  bool begins_here() {
    if (before_ == Before::unknown) {
      reader_.refuse("^ behind what can be empty is not supported");
    }
    knows_begin_ = true;
    return before_ == Before::nothing;
  }

  // After $: whether nothing of a whole match can follow.
  bool ends_anyway(int depth) const {
    if (match_ == Match::anywhere || inside_ahead_) return false;
    const std::string_view rest = reader_.text().substr(reader_.at());
    return (depth == 0 && at_end_of_sequence()) || rest.find_first_not_of(")$") == rest.npos;
  }

  ExprPtr end_of_text() {
    if (match_ == Match::terminal) reader_.refuse("a terminal has $ at its end only");
    return ahead_of(sequence({}), true);
  }

  // wanted: else anything but `rest` may follow.
  ExprPtr ahead_of(const ExprPtr& rest, bool wanted) {
    looks_ahead_ = true;
    if (!marks_) return ahead_from(rest, wanted);
    std::vector<ExprPtr> ways;
    for (const bool word : {true, false}) {
      ways.push_back(sequence({behind(word), ahead_from(sequence({mark(word), rest}), wanted)}));
    }
    return choice(std::move(ways));
  }

  ExprPtr ahead_from(const ExprPtr& rest, bool wanted) {
    const TextSet all(any_text(), kName, ahead_work_);
    TextSet set(rest, kName, ahead_work_);
    if (!wanted) set = TextSet::without(all, set, ahead_work_);
    return look_ahead(std::move(set), all);
  }

  // After (?= or (?!: its condition on the rest of the text.
  ExprPtr parse_ahead(int depth, bool wanted) {
    if (match_ == Match::terminal && !std::exchange(in_front_, false)) {
      reader_.refuse("a terminal may look ahead only at its beginning");
    }
    const bool outer = std::exchange(inside_ahead_, true);
    const ExprPtr rest = parse_choice(depth, true);
    inside_ahead_ = outer;
    return ahead_of(rest, wanted);
  }

  // After \b, or after \B: whether exactly one of the neighbouring characters is a word character.
  ExprPtr boundary(bool wanted) {
    if (match_ == Match::terminal) reader_.refuse("a terminal has no \\b");
    const ExprPtr next = sequence({written(kWord), repeat(written(complement({})), 0, kUnlimited)});
    return choice({sequence({behind(true), ahead_from(next, !wanted)}),
                   sequence({behind(false), ahead_from(next, wanted)})});
  }

  // An atom and its count; notes what comes before it.
  ExprPtr parse_repeated(int depth) {
    const Before before = before_;
    const bool knew = std::exchange(knows_begin_, false);
    const PatternReader atom = reader_;
    ExprPtr part = parse_atom(depth);
    const PatternReader::Bounds bounds = parse_bounds();
    const auto move_behind = [&](const Expr& expr) {
      const Width width = width_of(expr);
      before_ = !width.empty                            ? Before::some
                : before == Before::some || !width.some ? before
                                                        : Before::unknown;
    };
    const bool more = bounds.max == kUnlimited || bounds.max > 1;
    if (more && knows_begin_ && before == Before::nothing && width_of(*part).some) {
      // ^ can hold only in the first part.
      move_behind(*part);
      const PatternReader behind = std::exchange(reader_, atom);
      ExprPtr next = parse_atom(depth);
      reader_ = behind;
      const int64_t max = bounds.max == kUnlimited ? kUnlimited : bounds.max - 1;
      next = times(std::move(next), std::max<int64_t>(bounds.min - 1, 0), max);
      part = times(joined({part, std::move(next)}), std::min<int64_t>(bounds.min, 1), 1);
    } else {
      part = times(std::move(part), bounds.min, bounds.max);
    }
    move_behind(*part);
    knows_begin_ |= knew;
    return part;
  }

  // Whether a count such as {2,3} begins here. Other braces are characters.
  bool at_count() const {
    if (reader_.look() != '{') return false;
    constexpr std::string_view kWithin = "0123456789,";
    size_t end = 1;
    while (kWithin.find(reader_.look(end)) != kWithin.npos) ++end;
    return end > 1 && reader_.look(end) == '}';
  }

  PatternReader::Bounds parse_bounds() {
    const char c = reader_.look();
    PatternReader::Bounds bounds{1, 1};
    if (c == '*') {
      bounds = {0, kUnlimited};
    } else if (c == '+') {
      bounds = {1, kUnlimited};
    } else if (c == '?') {
      bounds = {0, 1};
    } else if (!at_count()) {
      return bounds;
    }
    reader_.advance();
    if (c == '{') bounds = reader_.bounds();
    reader_.skip("?");  // lazy: the same texts match
    const char next = reader_.look();
    if (next == '+') reader_.refuse("possessive repetitions are not supported");
    if (next == '*' || next == '?' || at_count()) reader_.refuse("a repetition of a repetition");
    return bounds;
  }

  ExprPtr parse_atom(int depth) {
    if (at_count()) reader_.refuse("nothing to repeat");
    const char32_t c = reader_.next_char();
    switch (c) {
      case '(':
        return parse_group(depth);
      case '[':
        return write(parse_class());
      case '.':
        return write(flags_.dot_all ? complement({}) : complement({{'\n', '\n'}}));
      case '*':
      case '+':
      case '?':
        reader_.refuse("nothing to repeat");
      case '\\':
        if (reader_.skip("b")) return boundary(true);
        if (reader_.skip("B")) return boundary(false);
        return write(parse_escaped());
      default:
        return write(with_case({{c, c}}));
    }
  }

  // After (? and the letters i and s, also after a -, and before ) or :, which are read too: the
  // flags from there on. Else nothing is read.
  std::optional<Flags> read_flags(char end) {
    Flags out = flags_;
    bool value = true;
    for (size_t i = 0;; ++i) {
      switch (reader_.look(i)) {
        case 'i':
          out.ignore_case = value;
          break;
        case 's':
          out.dot_all = value;
          break;
        case '-':
          if (!value) return std::nullopt;
          value = false;
          break;
        default:
          if (reader_.look(i) != end || i == 0 || reader_.look(i - 1) == '-') return std::nullopt;
          reader_.advance(i + 1);
          return out;
      }
    }
  }

  // (?i): for the rest of the group.
  bool skip_flags() {
    const PatternReader begin = reader_;
    if (reader_.skip("(?")) {
      if (const auto flags = read_flags(')')) {
        flags_ = *flags;
        const std::string_view repeats = "*+?";
        if (repeats.find(reader_.look()) != repeats.npos || at_count()) {
          reader_.refuse("nothing to repeat");
        }
        return true;
      }
    }
    reader_ = begin;
    return false;
  }

  ExprPtr parse_group(int depth) {
    if (reader_.skip("?")) {
      if (const auto flags = read_flags(':')) {
        const Flags outer = std::exchange(flags_, *flags);
        ExprPtr out = close_group(parse_choice(depth + 1, false));
        flags_ = outer;
        return out;
      }
      if (!reader_.skip(":")) {
        if (reader_.starts_with("P=")) reader_.refuse("references are not supported");
        if (reader_.skip("=")) return close_group(parse_ahead(depth + 1, true));
        if (reader_.skip("!")) return close_group(parse_ahead(depth + 1, false));
        reader_.skip("P");
        if (!reader_.skip("<") || reader_.look() == '=' || reader_.look() == '!') {
          reader_.refuse(
              "of the groups (?...), only (?:...), names, (?=...), (?!...) and the flags i and "
              "s are supported");
        }
        while (!reader_.skip(">")) reader_.next_char();
      }
    }
    return close_group(parse_choice(depth + 1, false));
  }

  ExprPtr close_group(ExprPtr group) {
    if (!reader_.skip(")")) reader_.refuse("expected )");
    return group;
  }

  Ranges parse_class() {
    const bool negated = reader_.skip("^");
    Ranges ranges;
    for (bool first = true; first || reader_.look() != ']'; first = false) {
      if (reader_.starts_with("[:")) reader_.refuse("named classes are not supported");
      const Ranges low = parse_class_item();
      const bool single = is_single(low);
      if (single && reader_.look() == '-' && reader_.look(1) != ']') {
        reader_.advance();
        const Ranges high = parse_class_item();
        if (!is_single(high) || high[0].low < low[0].low) {
          reader_.refuse("this is no range");
        }
        const Ranges all = with_case({{low[0].low, high[0].low}});
        ranges.insert(ranges.end(), all.begin(), all.end());
      } else if (single) {
        const Ranges all = with_case(low);
        ranges.insert(ranges.end(), all.begin(), all.end());
      } else {
        ranges.insert(ranges.end(), low.begin(), low.end());
      }
    }
    reader_.advance();
    return negated ? complement(std::move(ranges)) : ranges;
  }

  Ranges parse_class_item() {
    const char32_t c = reader_.next_char();
    if (c != '\\') return {{c, c}};
    if (reader_.skip("b")) return {{'\b', '\b'}};
    return parse_escape();
  }

  // After \p, or after \P.
  Ranges parse_property(bool wanted) {
    const size_t begin = reader_.at();
    std::string_view name = reader_.text().substr(begin, 1);
    if (reader_.skip("{")) {
      while (!reader_.starts_with("}")) reader_.next_char();
      name = reader_.text().substr(begin + 1, reader_.at() - begin - 1);
    }
    std::optional<Ranges> out = property_chars(name);
    if (!out) reader_.refuse("there is no property of characters \"", name, "\"");
    reader_.advance();
    Ranges all = with_case(*std::move(out));
    return wanted ? all : complement(std::move(all));
  }

  static std::optional<Ranges> known_class(char32_t kind) {
    switch (kind) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement(kSpace);
      default:
        return std::nullopt;
    }
  }

  Ranges parse_escape() {
    const char32_t kind = reader_.next_char();
    if (std::optional<Ranges> known = known_class(kind)) return *std::move(known);
    constexpr std::string_view kNames = "tnrfv0";
    constexpr std::string_view kMeant("\t\n\r\f\v\0", 6);
    char32_t c = kind;
    if (kind < 0x80 && kNames.find(static_cast<char>(kind)) != std::string_view::npos) {
      c = static_cast<unsigned char>(kMeant[kNames.find(static_cast<char>(kind))]);
    } else if (kind == 'x') {
      c = reader_.skip("{") ? parse_braced_hex() : reader_.hex(2);
    } else if (kind == 'p' || kind == 'P') {
      return parse_property(kind == 'p');
    } else if (kind == 'u') {
      c = parse_unicode();
    } else if (kind >= '1' && kind <= '9') {
      reader_.refuse("references are not supported");
    } else if ((kind >= 'a' && kind <= 'z') || (kind >= 'A' && kind <= 'Z')) {
      reader_.refuse("the escape \\", static_cast<char>(kind), " is not supported");
    }
    return {{c, c}};
  }

  // Outside of classes.
  Ranges parse_escaped() {
    Ranges out = parse_escape();
    return is_single(out) ? with_case(std::move(out)) : out;
  }

  static bool is_single(const Ranges& ranges) {
    return ranges.size() == 1 && ranges[0].low == ranges[0].high;
  }

  // As ECMA-262: \uHHHH, a pair of them for a character that takes two in UTF-16, or \u{H...}.
  char32_t parse_unicode() {
    if (reader_.skip("{")) return parse_braced_hex();
    const char32_t high = reader_.hex_number(4);
    if (high < 0xD800 || high > 0xDFFF) return high;
    const char32_t low = high < 0xDC00 && reader_.skip("\\u") ? reader_.hex_number(4) : 0;
    if (low < 0xDC00 || low > 0xDFFF) reader_.refuse("this is half of a character");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  char32_t parse_braced_hex() {
    int digits = 0;
    while (digits <= 6 && reader_.look(static_cast<size_t>(digits)) != '}') ++digits;
    if (digits < 1 || digits > 6) reader_.refuse("expected one to six hexadecimal digits and }");
    const char32_t out = reader_.hex(digits);
    reader_.advance();
    return out;
  }

  PatternReader reader_;
  const CharWriter& writer_;
  const Match match_;
  const bool marks_;  // characters are followed by marks
  Flags flags_;
  int64_t ahead_work_ = kAheadWork;
  std::map<std::u32string, ExprPtr> written_;
  bool looks_ahead_;
  bool inside_ahead_ = false;
  bool in_front_ = false;  // only lookaheads come before
  Before before_ = Before::nothing;
  bool knows_begin_ = false;  // some ^ was read
};

}  // namespace

ExprPtr parse_regex(std::string_view where, std::string_view pattern, const CharWriter& writer,
                    Match match) {
  return Parser(where, pattern, writer, match).run();
}

}  // namespace rbee::grammar
