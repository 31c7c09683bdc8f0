#include "rbee/grammar/gbnf.h"

#include <map>

#include "rbee/grammar/pattern_reader.h"
#include "rbee/grammar/utf8_ranges.h"

namespace rbee::grammar {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, const TokenReader& tokens)
      : reader_("grammar", text), tokens_(tokens) {}

  Grammar run() {
    reader_.skip_space();
    while (!reader_.done()) {
      parse_rule();
      reader_.skip_space();
    }
    for (size_t i = 0; i < grammar_.rules.size(); ++i) {
      const Rule& rule = grammar_.rules[i];
      check(rule.body != nullptr, "grammar", "the rule ", rule.name, " is used but not defined");
    }
    const auto root = names_.find("root");
    check(root != names_.end(), "grammar", "there is no rule named root");
    grammar_.root = root->second;
    return std::move(grammar_);
  }

 private:
  std::string parse_name() {
    std::string out;
    for (; is_name_char(reader_.look()); reader_.advance()) out += reader_.look();
    if (out.empty()) reader_.refuse("expected the name of a rule");
    return out;
  }

  int32_t rule_of(const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(name, static_cast<int32_t>(grammar_.rules.size()));
    if (fresh) grammar_.rules.push_back({name, nullptr});
    return at->second;
  }

  void parse_rule() {
    const int32_t index = rule_of(parse_name());
    reader_.skip_space();
    if (!reader_.skip("::=")) reader_.refuse("expected ::=");
    ExprPtr body = parse_choice(0);
    // Of two rules of one name the later holds.
    grammar_.rules[static_cast<size_t>(index)].body = std::move(body);
    if (!reader_.done() && !rule_begins()) reader_.refuse("unexpected ", reader_.look());
  }

  // Whether a name and ::= come next: the rule before has ended.
  bool rule_begins() const {
    size_t i = 0;
    while (is_name_char(reader_.look(i))) ++i;
    if (i == 0) return false;
    while (reader_.look(i) == ' ' || reader_.look(i) == '\t') ++i;
    return reader_.look(i) == ':' && reader_.look(i + 1) == ':' && reader_.look(i + 2) == '=';
  }

  ExprPtr parse_choice(int depth) {
    if (depth > kMaxNesting) reader_.refuse("more than ", kMaxNesting, " groups in each other");
    std::vector<ExprPtr> parts;
    do {
      parts.push_back(parse_sequence(depth));
    } while (reader_.skip("|"));
    return choice(std::move(parts));
  }

  ExprPtr parse_sequence(int depth) {
    std::vector<ExprPtr> parts;
    for (reader_.skip_space(); !reader_.done(); reader_.skip_space()) {
      const char c = reader_.look();
      if (c == '|' || c == ')' || (is_name_char(c) && rule_begins())) break;
      parts.push_back(parse_repeats(parse_atom(depth)));
    }
    return sequence(std::move(parts));
  }

  ExprPtr parse_repeats(ExprPtr part) {
    for (int count = 0;; ++count) {
      if (count > kMaxNesting)
        reader_.refuse("more than ", kMaxNesting, " repetitions of one part");
      reader_.skip_space();
      if (reader_.skip("*")) {
        part = repeat(std::move(part), 0, kUnlimited);
      } else if (reader_.skip("+")) {
        part = repeat(std::move(part), 1, kUnlimited);
      } else if (reader_.skip("?")) {
        part = optional(std::move(part));
      } else if (reader_.skip("{")) {
        const PatternReader::Bounds bounds = reader_.bounds(PatternReader::Space::skipped);
        part = repeat(std::move(part), bounds.min, bounds.max);
      } else {
        return part;
      }
    }
  }

  ExprPtr parse_atom(int depth) {
    if (reader_.skip("\"")) return parse_text();
    if (reader_.skip("[")) return parse_class();
    if (reader_.skip(".")) return chars_except({});
    if (reader_.skip("(")) {
      ExprPtr out = parse_choice(depth + 1);
      if (!reader_.skip(")")) reader_.refuse("expected )");
      return out;
    }
    if (reader_.look() == '<') return parse_token(false);
    if (reader_.starts_with("!<")) return parse_token(true);
    if (is_name_char(reader_.look())) return rule(rule_of(parse_name()));
    reader_.refuse("unexpected ", reader_.look());
  }

  ExprPtr parse_token(bool other) {
    if (!tokens_) reader_.refuse("tokens such as <[1]> and <name> are not known here");
    if (other) reader_.advance();
    const size_t begin = reader_.at();
    while (!reader_.skip(">")) {
      if (reader_.done() || reader_.look() == '\n') reader_.refuse("a token has no > in its line");
      reader_.next_char();
    }
    return tokens_(reader_.text().substr(begin, reader_.at() - begin), other);
  }

  ExprPtr parse_text() {
    std::string out;
    while (!reader_.skip("\"")) append_utf8(out, parse_char());
    return literal(std::move(out));
  }

  ExprPtr parse_class() {
    const bool negated = reader_.skip("^");
    std::vector<CharRange> ranges;
    while (!reader_.skip("]")) {
      const char32_t low = parse_char();
      char32_t high = low;
      if (reader_.look() == '-' && reader_.look(1) != ']') {
        reader_.advance();
        high = parse_char();
        if (high < low) reader_.refuse("the range ends before it begins");
      }
      ranges.push_back({low, high});
    }
    return negated ? chars_except(std::move(ranges)) : chars(std::move(ranges));
  }

  char32_t parse_char() {
    const char32_t c = reader_.next_char();
    if (c != '\\') return c;
    const char32_t kind = reader_.next_char();
    switch (kind) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return reader_.hex(2);
      case 'u':
        return reader_.hex(4);
      case 'U':
        return reader_.hex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '^':
      case '-':
        return kind;
      default:
        reader_.refuse("unknown escape");
    }
  }

  PatternReader reader_;
  const TokenReader& tokens_;
  Grammar grammar_;
  std::map<std::string, int32_t, std::less<>> names_;
};

}  // namespace

Grammar parse_gbnf(std::string_view text, const TokenReader& tokens) {
  return Parser(text, tokens).run();
}

}  // namespace rbee::grammar
