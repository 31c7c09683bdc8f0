#include "rbee/grammar/lark.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "rbee/grammar/pattern_reader.h"
#include "rbee/grammar/utf8_ranges.h"

namespace rbee::grammar {
namespace {

constexpr std::string_view kWhere = "lark";

// Lark's grammars/common.lark, each as one expression; strings and comments end as early as they
// can.
constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kCommon = {{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[a-fA-F0-9]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", R"([0-9]+\.[0-9]*|\.[0-9]+)"},
    {"FLOAT", R"([0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"SIGNED_FLOAT",
     R"([+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))"},
    {"NUMBER", R"((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"SIGNED_NUMBER", R"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", R"("(?:[^"\\\n]|\\.)*")"},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[_A-Za-z][_A-Za-z0-9]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(?:\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", R"(/\*(?:[^*]|\*+[^*/])*\*+/)"},
    {"SQL_COMMENT", "--[^\\n]*"},
    {"_EXP", "[eE][+-]?[0-9]+"},
}};

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_terminal(std::string_view name) {
  return std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Parser {
 public:
  Parser(std::string_view text, const CharWriter& writer)
      : reader_(kWhere, text), writer_(writer) {}

  Grammar run() {
    grammar_.rules.push_back({"%ignore", nullptr});
    for (skip_blank(); !reader_.done(); skip_blank()) {
      reader_.skip("%") ? parse_directive() : parse_definition();
    }
    grammar_.rules[kIgnore].body = repeat(choice(std::move(ignored_)), 0, kUnlimited);
    const auto start = names_.find("start");
    if (start == names_.end()) reader_.refuse("there is no rule start");
    for (const Rule& one : grammar_.rules) {
      if (one.body == nullptr) reader_.refuse(one.name, " is not defined");
    }
    grammar_.root = static_cast<int32_t>(grammar_.rules.size());
    grammar_.rules.push_back({"lark", sequence({rule(kIgnore), rule(start->second)})});
    return std::move(grammar_);
  }

 private:
  static constexpr int32_t kIgnore = 0;
  using Alternatives = std::vector<std::vector<ExprPtr>>;

  ExprPtr write(std::vector<CharRange> ranges) const {
    return writer_ ? writer_(std::move(ranges)) : chars(std::move(ranges));
  }

  void skip_line() {
    while (!reader_.done() && reader_.look() != '\n') reader_.advance();
  }
  void skip_space() {
    while (reader_.look() == ' ' || reader_.look() == '\t') reader_.advance();
  }
  // And new lines, comments, and backslashes that join lines.
  void skip_blank() {
    while (true) {
      skip_space();
      if (reader_.starts_with("//") || reader_.look() == '#') {
        skip_line();
      } else if (!reader_.skip("\n") && !reader_.skip("\r\n") && !reader_.skip("\\\n") &&
                 !reader_.skip("\\\r\n")) {
        return;
      }
    }
  }

  std::string parse_name() {
    std::string out;
    for (; is_name_char(reader_.look()); reader_.advance()) out += reader_.look();
    const size_t first = out.find_first_not_of('_');
    if (first == std::string::npos || (out[first] >= '0' && out[first] <= '9')) {
      reader_.refuse("expected the name of a rule or terminal");
    }
    const bool mixed =
        !is_terminal(out) && std::ranges::any_of(out, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (mixed) reader_.refuse(out, " is neither a rule's name nor a terminal's");
    return out;
  }

  int32_t rule_of(const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(name, static_cast<int32_t>(grammar_.rules.size()));
    if (fresh) grammar_.rules.push_back({name, nullptr});
    return at->second;
  }

  void define(const std::string& name, ExprPtr body) {
    ExprPtr& known = grammar_.rules[static_cast<size_t>(rule_of(name))].body;
    if (known != nullptr) reader_.refuse(name, " is defined twice");
    known = std::move(body);
  }

  // %import common.NAME, %import common.NAME -> OTHER, %import common (A, B); %ignore ...
  void parse_directive() {
    if (reader_.skip("ignore")) {
      ignored_.push_back(in_terminal([&] { return parse_choice(0); }));
      return;
    }
    if (!reader_.skip("import")) reader_.refuse("of directives, %import and %ignore are supported");
    skip_space();
    if (!reader_.skip("common")) reader_.refuse("only terminals of `common` can be imported");
    skip_space();
    if (reader_.skip("(")) {
      do {
        skip_blank();
        const std::string name = parse_name();
        import(name, name);
        skip_blank();
      } while (reader_.skip(","));
      if (!reader_.skip(")")) reader_.refuse("expected )");
      return;
    }
    if (!reader_.skip(".")) reader_.refuse("expected . and the name of a terminal");
    const std::string name = parse_name();
    skip_space();
    std::string as = name;
    if (reader_.skip("->")) {
      skip_space();
      as = parse_name();
    }
    import(name, as);
  }

  void import(const std::string& name, const std::string& as) {
    const auto* const found =
        std::ranges::find(kCommon, name, &std::pair<std::string_view, std::string_view>::first);
    if (found == kCommon.end()) reader_.refuse("common.", name, " is not known");
    define(as, parse_regex(name, found->second, writer_));
  }

  void parse_definition() {
    while (reader_.look() == '?' || reader_.look() == '!') reader_.advance();
    const std::string name = parse_name();
    if (reader_.look() == '{') reader_.refuse("templates are not supported");
    skip_priority();
    skip_space();
    if (!reader_.skip(":")) reader_.refuse("expected :");
    if (is_terminal(name)) {
      define(name, in_terminal([&] { return parse_choice(0); }));
    } else {
      const int32_t self = rule_of(name);
      define(name, repeated(parse_alternatives(0), self));
    }
    if (!reader_.done() && reader_.look() != '%' && !definition_begins()) {
      reader_.refuse("unexpected ", reader_.look());
    }
  }

  template <typename Parse>
  ExprPtr in_terminal(Parse parse) {
    in_terminal_ = true;
    ExprPtr out = parse();
    in_terminal_ = false;
    return out;
  }

  void skip_priority() {
    if (!reader_.skip(".")) return;
    reader_.skip("-");
    while (reader_.look() >= '0' && reader_.look() <= '9') reader_.advance();
  }

  // Whether a name and a colon come next: the definition before has ended.
  bool definition_begins() const {
    size_t i = 0;
    while (reader_.look(i) == '?' || reader_.look(i) == '!') ++i;
    const size_t name = i;
    while (is_name_char(reader_.look(i))) ++i;
    if (i == name) return false;
    if (reader_.look(i) == '{') return true;
    if (reader_.look(i) == '.') ++i;
    if (reader_.look(i) == '-') ++i;
    while (reader_.look(i) >= '0' && reader_.look(i) <= '9') ++i;
    while (reader_.look(i) == ' ' || reader_.look(i) == '\t') ++i;
    return reader_.look(i) == ':';
  }

  // a: a x | y is a: y x*.
  static ExprPtr repeated(Alternatives alternatives, int32_t self) {
    std::vector<ExprPtr> first, more;
    for (std::vector<ExprPtr>& parts : alternatives) {
      const bool again =
          !parts.empty() && parts.front()->kind == Expr::Kind::rule && parts.front()->rule == self;
      if (again) parts.erase(parts.begin());
      if (again && parts.empty()) continue;
      (again ? more : first).push_back(sequence(std::move(parts)));
    }
    if (more.empty()) return choice(std::move(first));
    return sequence({choice(std::move(first)), repeat(choice(std::move(more)), 0, kUnlimited)});
  }

  ExprPtr parse_choice(int depth) {
    std::vector<ExprPtr> ways;
    for (std::vector<ExprPtr>& parts : parse_alternatives(depth)) {
      ways.push_back(sequence(std::move(parts)));
    }
    return choice(std::move(ways));
  }

  Alternatives parse_alternatives(int depth) {
    if (depth > kMaxNesting) reader_.refuse("more than ", kMaxNesting, " groups in each other");
    Alternatives out;
    do {
      out.push_back(parse_sequence(depth));
    } while (reader_.skip("|"));
    return out;
  }

  std::vector<ExprPtr> parse_sequence(int depth) {
    std::vector<ExprPtr> parts;
    for (skip_blank(); !reader_.done(); skip_blank()) {
      const char c = reader_.look();
      if (c == '|' || c == ')' || c == ']' || c == '%' || definition_begins()) break;
      if (reader_.skip("->")) {
        skip_space();
        parse_name();
        skip_blank();
        break;
      }
      parts.push_back(parse_repeats(parse_atom(depth)));
    }
    return parts;
  }

  ExprPtr parse_repeats(ExprPtr part) {
    skip_space();
    if (reader_.skip("*")) return repeat(std::move(part), 0, kUnlimited);
    if (reader_.skip("+")) return repeat(std::move(part), 1, kUnlimited);
    if (reader_.skip("?")) return optional(std::move(part));
    if (!reader_.skip("~")) return part;
    skip_space();
    const int64_t min = reader_.count();
    skip_space();
    if (!reader_.skip("..")) return repeat(std::move(part), min, min);
    skip_space();
    const int64_t max = reader_.count();
    if (max < min) reader_.refuse("at most ", max, " is less than at least ", min);
    return repeat(std::move(part), min, max);
  }

  ExprPtr parse_atom(int depth) {
    const char c = reader_.look();
    if (reader_.skip("(") || reader_.skip("[")) {
      ExprPtr out = parse_choice(depth + 1);
      const char close = c == '(' ? ')' : ']';
      if (!reader_.skip(std::string_view(&close, 1))) reader_.refuse("expected ", close);
      return c == '(' ? out : optional(std::move(out));
    }
    if (c == '"') return ignoring(parse_text());
    if (c == '/') return ignoring(parse_expression());
    if (!is_name_char(c)) reader_.refuse("unexpected ", c);
    const std::string name = parse_name();
    if (reader_.look() == '{') reader_.refuse("templates are not supported");
    if (is_terminal(name)) return ignoring(rule(rule_of(name)));
    if (in_terminal_) reader_.refuse("the rule ", name, " stands in a terminal");
    return rule(rule_of(name));
  }

  // Ignored terminals may follow each terminal, but not interrupt one.
  ExprPtr ignoring(ExprPtr terminal) const {
    if (in_terminal_) return terminal;
    return sequence({std::move(terminal), rule(kIgnore)});
  }

  // "text", "text"i, or "a".."z".
  ExprPtr parse_text() {
    const std::u32string text = parse_quoted();
    const bool any_case = reader_.skip("i");
    if (!any_case && is_range()) {
      skip_space();
      reader_.advance(2);
      skip_space();
      const std::u32string last = reader_.look() == '"' ? parse_quoted() : U"";
      if (text.size() != 1 || last.size() != 1 || last[0] < text[0]) {
        reader_.refuse("this is no range of characters");
      }
      return write({{text[0], last[0]}});
    }
    if (text.empty()) reader_.refuse("a text is empty");
    std::vector<ExprPtr> parts;
    for (const char32_t c : text) {
      if (any_case && c >= 0x80) reader_.refuse("the flag i is for texts in ASCII");
      const char32_t other = any_case && is_letter(c) ? c ^ 0x20 : c;
      parts.push_back(write({{c, c}, {other, other}}));
    }
    return sequence(std::move(parts));
  }

  bool is_range() const {
    size_t i = 0;
    while (reader_.look(i) == ' ' || reader_.look(i) == '\t') ++i;
    return reader_.look(i) == '.' && reader_.look(i + 1) == '.';
  }

  std::u32string parse_quoted() {
    reader_.advance();
    std::u32string out;
    while (!reader_.skip("\"")) {
      const char32_t c = reader_.next_char();
      if (c == '\n') reader_.refuse("a text has no end in its line");
      out += c == '\\' ? parse_escape() : c;
    }
    return out;
  }

  char32_t parse_escape() {
    constexpr std::string_view kNames = "ntrf\\\"";
    constexpr std::string_view kMeant = "\n\t\r\f\\\"";
    const char32_t kind = reader_.next_char();
    if (kind == 'x') return reader_.hex(2);
    if (kind == 'u') return reader_.hex(4);
    if (kind == 'U') return reader_.hex(8);
    const size_t known = kind < 0x80 ? kNames.find(static_cast<char>(kind)) : kNames.npos;
    if (known == kNames.npos) reader_.refuse("unknown escape");
    return static_cast<unsigned char>(kMeant[known]);
  }

  ExprPtr parse_expression() {
    reader_.advance();
    std::string pattern;
    while (!reader_.skip("/")) {
      if (reader_.done() || reader_.look() == '\n') {
        reader_.refuse("a regular expression has no end in its line");
      }
      if (reader_.look() == '\\') {
        pattern += reader_.look();
        reader_.advance();
      }
      append_utf8(pattern, reader_.next_char());
    }
    const std::string where = cat(kWhere, ": /", pattern, "/");
    for (; is_name_char(reader_.look()); reader_.advance()) {
      const char flag = reader_.look();
      if (flag == 'u') continue;
      if (flag != 'i' && flag != 's') {
        reader_.refuse("the flag ", flag, " of regular expressions");
      }
      pattern = cat("(?", flag, ")", pattern);
    }
    return parse_regex(where, pattern, writer_, Match::terminal);
  }

  PatternReader reader_;
  const CharWriter& writer_;
  Grammar grammar_;
  std::map<std::string, int32_t, std::less<>> names_;
  std::vector<ExprPtr> ignored_;
  bool in_terminal_ = false;
};

}  // namespace

Grammar parse_lark(std::string_view text, const CharWriter& writer) {
  return Parser(text, writer).run();
}

}  // namespace rbee::grammar
