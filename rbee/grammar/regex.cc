#include "rbee/grammar/regex.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rbee/grammar/look_ahead.h"
#include "rbee/grammar/pattern_reader.h"

namespace rbee::grammar {
namespace {

using Ranges = std::vector<CharRange>;

constexpr int64_t kAheadWork = 2'000'000;  // steps for the automata of what looks ahead
constexpr std::string_view kName = "looking ahead";

const Ranges kDigits{{'0', '9'}};
const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace{{'\t', '\r'}, {' ', ' '}};

class Parser {
 public:
  Parser(std::string_view where, std::string_view pattern, const CharWriter& writer, Match match)
      : reader_(where, pattern), writer_(writer), match_(match) {}

  ExprPtr run() {
    ExprPtr out = parse_choice(0);
    if (!reader_.done()) reader_.refuse("unexpected )");
    return looks_ahead_ ? TextSet(out, kName, ahead_work_).expr() : out;
  }

 private:
  ExprPtr write(Ranges ranges) const {
    return writer_ ? writer_(std::move(ranges)) : chars(std::move(ranges));
  }

  ExprPtr parse_choice(int depth) {
    if (depth > kMaxNesting) reader_.refuse("more than ", kMaxNesting, " groups in each other");
    std::vector<ExprPtr> parts;
    do {
      parts.push_back(parse_sequence(depth));
    } while (reader_.skip("|"));
    return choice(std::move(parts));
  }

  bool at_end_of_sequence() const {
    return reader_.done() || reader_.look() == '|' || reader_.look() == ')';
  }

  ExprPtr parse_sequence(int depth) {
    if (match_ == Match::anywhere && depth == 0) return parse_part();
    std::vector<ExprPtr> parts;
    bool only_aheads = depth == 0;
    while (!at_end_of_sequence()) {
      if (reader_.look() == '^' || reader_.look() == '$') {
        skip_anchor(depth);
        continue;
      }
      in_front_ = only_aheads;
      parts.push_back(parse_repeat(parse_atom(depth)));
      only_aheads = only_aheads && parts.back()->kind == Expr::Kind::ahead;
    }
    return sequence(std::move(parts));
  }

  ExprPtr any_text() const { return repeat(write(complement({})), 0, kUnlimited); }

  // Texts with such a part.
  ExprPtr parse_part() {
    if (reader_.skip("^")) return parse_begin(0);
    return sequence({any_text(), parse_begin(0)});
  }

  // Texts that begin so, and end there where $ says so.
  ExprPtr parse_begin(int depth) {
    std::vector<ExprPtr> parts;
    bool ends = false;
    while (!at_end_of_sequence()) {
      ends = reader_.skip("$");
      if (ends && at_end_of_sequence()) break;
      if (ends || reader_.look() == '^') refuse_anchor();
      parts.push_back(parse_repeat(parse_atom(depth)));
    }
    if (!ends) parts.push_back(any_text());
    return sequence(std::move(parts));
  }

  // Behind (?= or (?!: what it says of the rest of the text.
  ExprPtr parse_ahead(int depth, bool wanted) {
    if (depth > kMaxNesting) reader_.refuse("more than ", kMaxNesting, " groups in each other");
    if (match_ == Match::terminal && !std::exchange(in_front_, false)) {
      reader_.refuse("a terminal looks ahead in front of all else only");
    }
    const bool outer = std::exchange(inside_ahead_, true);
    std::vector<ExprPtr> ways;
    do {
      ways.push_back(parse_begin(depth));
    } while (reader_.skip("|"));
    inside_ahead_ = outer;
    looks_ahead_ = true;
    const TextSet all(any_text(), kName, ahead_work_);
    TextSet rest(choice(std::move(ways)), kName, ahead_work_);
    if (!wanted) rest = TextSet::without(all, rest, ahead_work_);
    return look_ahead(std::move(rest), all);
  }

  [[noreturn]] void refuse_anchor() {
    reader_.refuse("^ and $ are known at the ends of the pattern only");
  }

  // Anchors say what holds anyway, where nothing of the pattern lies between them and the end.
  void skip_anchor(int depth) {
    const std::string_view text = reader_.text();
    const bool begin = reader_.look() == '^';
    const std::string_view rest =
        begin ? text.substr(0, reader_.at()) : text.substr(reader_.at() + 1);
    const char beside = rest.empty() ? '|' : begin ? rest.back() : rest.front();
    const bool at_border = depth == 0 && beside == '|';
    const bool at_end = rest.find_first_not_of(begin ? "(?:^" : ")$") == std::string_view::npos;
    const bool part = match_ == Match::anywhere || inside_ahead_;
    if (part || (!at_border && !at_end)) refuse_anchor();
    reader_.advance();
  }

  ExprPtr parse_repeat(ExprPtr part) {
    const char c = reader_.look();
    PatternReader::Bounds bounds{1, 1};
    if (c == '*') {
      bounds = {0, kUnlimited};
    } else if (c == '+') {
      bounds = {1, kUnlimited};
    } else if (c == '?') {
      bounds = {0, 1};
    } else if (c != '{') {
      return part;
    }
    reader_.advance();
    if (c == '{') bounds = reader_.bounds();
    reader_.skip("?");  // lazy: the same texts match
    const char next = reader_.look();
    if (next == '+') reader_.refuse("possessive repetitions are not supported");
    if (next == '*' || next == '?' || next == '{') reader_.refuse("a repetition of a repetition");
    return repeat(std::move(part), bounds.min, bounds.max);
  }

  ExprPtr parse_atom(int depth) {
    const char32_t c = reader_.next_char();
    switch (c) {
      case '(':
        return parse_group(depth);
      case '[':
        return write(parse_class());
      case '.':
        return write(complement({{'\n', '\n'}}));
      case '*':
      case '+':
      case '?':
      case '{':
        reader_.refuse("nothing to repeat");
      case '\\':
        return write(parse_escape());
      default:
        return write({{c, c}});
    }
  }

  ExprPtr parse_group(int depth) {
    if (reader_.skip("?")) {
      if (!reader_.skip(":")) {
        if (reader_.starts_with("P=")) reader_.refuse("references are not supported");
        if (reader_.skip("=")) return close_group(parse_ahead(depth + 1, true));
        if (reader_.skip("!")) return close_group(parse_ahead(depth + 1, false));
        reader_.skip("P");
        if (!reader_.skip("<") || reader_.look() == '=' || reader_.look() == '!') {
          reader_.refuse(
              "of the groups (?...), only (?:...), names, (?=...) and (?!...) are supported");
        }
        while (!reader_.skip(">")) reader_.next_char();
      }
    }
    return close_group(parse_choice(depth + 1));
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
      const bool single = low.size() == 1 && low[0].low == low[0].high;
      if (single && reader_.look() == '-' && reader_.look(1) != ']') {
        reader_.advance();
        const Ranges high = parse_class_item();
        if (high.size() != 1 || high[0].low != high[0].high || high[0].low < low[0].low) {
          reader_.refuse("this is no range");
        }
        ranges.push_back({low[0].low, high[0].low});
      } else {
        ranges.insert(ranges.end(), low.begin(), low.end());
      }
    }
    reader_.advance();
    return negated ? complement(std::move(ranges)) : ranges;
  }

  Ranges parse_class_item() {
    const char32_t c = reader_.next_char();
    if (c == '\\') return parse_escape();
    return {{c, c}};
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
    } else if (kind == 'u') {
      c = reader_.hex(4);
    } else if (kind >= '1' && kind <= '9') {
      reader_.refuse("references are not supported");
    } else if ((kind >= 'a' && kind <= 'z') || (kind >= 'A' && kind <= 'Z')) {
      reader_.refuse("the escape \\", static_cast<char>(kind), " is not supported");
    }
    return {{c, c}};
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
  int64_t ahead_work_ = kAheadWork;
  bool looks_ahead_ = false;
  bool inside_ahead_ = false;
  bool in_front_ = false;  // nothing but looking ahead stands before
};

}  // namespace

ExprPtr parse_regex(std::string_view where, std::string_view pattern, const CharWriter& writer,
                    Match match) {
  return Parser(where, pattern, writer, match).run();
}

}  // namespace rbee::grammar
