#include "rbee/text/go_template/parser.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/text/go_template/functions.h"
#include "rbee/text/go_template/lexer.h"

namespace rbee::text::go {
namespace {

constexpr size_t kMostVariables = 1000;

class Parser {
 public:
  Parser(std::vector<Token> tokens, const TemplateLimits& limits)
      : tokens_(std::move(tokens)), limits_(limits) {}

  Template run() {
    variables_ = {"$"};
    out_.root = nodes({""});
    return std::move(out_);
  }

 private:
  // Variables that a block declares end with it.
  class Scope {
   public:
    explicit Scope(Parser& parser) : parser_(parser), size_(parser.variables_.size()) {
      const int most = parser.limits_.max_depth;
      if (++parser.depth_ > most) parser.fail_at(cat("nested more than ", most, " deep"));
    }
    ~Scope() {
      --parser_.depth_;
      parser_.variables_.resize(size_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Parser& parser_;
    const size_t size_;
  };

  [[noreturn]] void fail_at(std::string_view why) const {
    fail(Code::invalid_argument, "template", "line ", line(), ": ", why);
  }

  bool at_end() const { return at_ >= tokens_.size(); }
  int line() const { return tokens_.empty() ? 1 : tokens_[std::min(at_, tokens_.size() - 1)].line; }
  bool is(TokenType type) const { return !at_end() && tokens_[at_].type == type; }
  bool is(TokenType type, std::string_view text) const {
    return is(type) && tokens_[at_].text == text;
  }
  const Token& take() { return tokens_[at_++]; }
  bool take_if(TokenType type, std::string_view text) {
    const bool there = is(type, text);
    if (there) ++at_;
    return there;
  }
  void skip_space() {
    while (is(TokenType::space)) ++at_;
  }
  void close() {
    skip_space();
    if (!is(TokenType::close)) fail_at(cat("unexpected ", found(), " in an action"));
    ++at_;
  }
  std::string found() const {
    return at_end() || tokens_[at_].text.empty() ? "end" : cat("'", tokens_[at_].text, "'");
  }

  // Up to one of these words, which it takes; `ended_` says which.
  std::shared_ptr<const Nodes> nodes(const std::vector<std::string_view>& ends) {
    Nodes out;
    while (true) {
      if (at_end()) {
        if (std::ranges::count(ends, "") == 0) fail_at("an end is missing");
        ended_ = "";
        break;
      }
      if (is(TokenType::text)) {
        out.push_back({.type = Node::Type::text, .line = line(), .text = take().text});
        continue;
      }
      ++at_;  // open
      skip_space();
      if (is(TokenType::word, "end") || is(TokenType::word, "else")) {
        if (std::ranges::count(ends, tokens_[at_].text) == 0) {
          fail_at(cat("unexpected ", found()));
        }
        ended_ = take().text;
        break;
      }
      action(out);
    }
    return std::make_shared<const Nodes>(std::move(out));
  }

  void action(Nodes& out) {
    const int line = this->line();
    if (take_if(TokenType::word, "if")) return out.push_back(block(Node::Type::branch, line));
    if (take_if(TokenType::word, "with")) return out.push_back(block(Node::Type::with, line));
    if (take_if(TokenType::word, "range")) return out.push_back(block(Node::Type::loop, line));
    if (take_if(TokenType::word, "define")) return define();
    if (take_if(TokenType::word, "block")) return out.push_back(named_block(line));
    if (take_if(TokenType::word, "template")) return out.push_back(call(line));
    for (const auto& [word, type] :
         {std::pair<std::string_view, Node::Type>("break", Node::Type::stop),
          {"continue", Node::Type::next}}) {
      if (!take_if(TokenType::word, word)) continue;
      if (loops_ == 0) fail_at(cat(word, " outside of range"));
      close();
      return out.push_back({.type = type, .line = line});
    }
    Pipe pipe = pipeline(1);
    close();
    out.push_back({.type = Node::Type::action, .line = line, .pipe = std::move(pipe)});
  }

  Node block(Node::Type type, int line) {
    const Scope scope(*this);
    Node out{.type = type, .line = line};
    out.pipe = pipeline(type == Node::Type::loop ? 2 : 1);
    close();
    if (type == Node::Type::loop) ++loops_;
    {
      const Scope body(*this);
      out.body = nodes({"end", "else"});
    }
    if (type == Node::Type::loop) --loops_;
    if (ended_ == "else") out.otherwise = otherwise(type);
    close();
    return out;
  }

  // "else", or "else if ..." and "else with ...", which are a block of their own in it. The last
  // "end" is left to be closed.
  std::shared_ptr<const Nodes> otherwise(Node::Type type) {
    const Scope scope(*this);
    skip_space();
    const bool more = (type == Node::Type::branch && is(TokenType::word, "if")) ||
                      (type == Node::Type::with && is(TokenType::word, "with"));
    if (!more) {
      close();
      return nodes({"end"});
    }
    const int line = this->line();
    ++at_;
    Node inner{.type = type, .line = line};
    inner.pipe = pipeline(1);
    close();
    {
      const Scope body(*this);
      inner.body = nodes({"end", "else"});
    }
    if (ended_ == "else") inner.otherwise = otherwise(type);
    Nodes out;
    out.push_back(std::move(inner));
    return std::make_shared<const Nodes>(std::move(out));
  }

  std::string name() {
    skip_space();
    const bool text = is(TokenType::literal) && tokens_[at_].literal.kind == Kind::text;
    if (!text) fail_at("a template's name must be a text");
    return *take().literal.text;
  }

  // A template of its own: it knows no variables but "$".
  std::shared_ptr<const Nodes> body_of(const std::string& name) {
    std::vector<std::string> outer = std::exchange(variables_, {"$"});
    const int loops = std::exchange(loops_, 0);
    std::shared_ptr<const Nodes> out;
    {
      const Scope scope(*this);
      out = nodes({"end"});
    }
    variables_ = std::move(outer);
    loops_ = loops;
    close();
    out_.named.emplace_back(name, out);
    return out;
  }

  void define() {
    if (depth_ > 0) fail_at("define is allowed outside of blocks alone");
    const std::string of = name();
    close();
    (void)body_of(of);
  }

  Node named_block(int line) {
    Node out{.type = Node::Type::call, .line = line, .text = name()};
    skip_space();
    out.pipe = pipeline(1);
    close();
    (void)body_of(out.text);
    return out;
  }

  Node call(int line) {
    Node out{.type = Node::Type::call, .line = line, .text = name()};
    skip_space();
    if (!is(TokenType::close)) out.pipe = pipeline(1);
    close();
    return out;
  }

  // most: variables that it may declare.
  Pipe pipeline(size_t most) {
    Pipe out{.line = line()};
    skip_space();
    declarations(most, out);
    out.commands.push_back(command());
    while (skip_space(), take_if(TokenType::mark, "|")) out.commands.push_back(command());
    for (const Command& one : out.commands) check_call(one, &one != &out.commands.front());
    if (!out.assigns) {
      for (const std::string& one : out.declared) declare(one);
    }
    return out;
  }

  void declarations(size_t most, Pipe& out) {
    const size_t begin = at_;
    std::vector<std::string> names;
    while (is(TokenType::variable) && names.size() < most) {
      names.push_back(take().text);
      skip_space();
      if (!take_if(TokenType::mark, ",")) break;
      skip_space();
    }
    const bool declares = !names.empty() && is(TokenType::mark, ":=");
    const bool assigns = !names.empty() && is(TokenType::mark, "=");
    if (!declares && !assigns) {
      at_ = begin;
      return;
    }
    ++at_;
    out.assigns = assigns;
    for (const std::string& one : names) {
      if (assigns) check_known(one);
    }
    out.declared = std::move(names);
  }

  void declare(const std::string& name) {
    if (variables_.size() >= kMostVariables) fail_at("there are too many variables");
    variables_.push_back(name);
  }

  void check_known(const std::string& name) const {
    if (std::ranges::count(variables_, name) == 0) fail_at(cat("undefined variable ", name));
  }

  // piped: it gets one argument more.
  void check_call(const Command& command, bool piped) const {
    const Operand& first = command.args.front();
    const size_t count = command.args.size() - 1 + (piped ? 1 : 0);
    if (first.function == nullptr) {
      if (count > 0) fail_at("only a function takes arguments");
      return;
    }
    const Function& called = *first.function;
    if (count >= called.least && count <= called.most) return;
    fail_at(cat(called.name, " does not take ", count, " arguments"));
  }

  Command command() {
    Command out;
    while (true) {
      skip_space();
      if (at_end() || is(TokenType::close) || is(TokenType::mark, "|") ||
          is(TokenType::mark, ")")) {
        break;
      }
      if (!out.args.empty() && tokens_[at_ - 1].type != TokenType::space) {
        fail_at(cat("a blank is missing before ", found()));
      }
      out.args.push_back(operand(out.args.empty()));
    }
    if (out.args.empty()) fail_at("a value is missing");
    return out;
  }

  Operand operand(bool first) {
    Operand out;
    const Token token = take();
    switch (token.type) {
      case TokenType::dot:
        return out;
      case TokenType::field:
        out.fields.push_back(token.text.substr(1));
        break;
      case TokenType::variable:
        check_known(token.text);
        out.base = Operand::Base::variable;
        out.variable = token.text;
        break;
      case TokenType::literal:
        out.base = Operand::Base::literal;
        out.literal = token.literal;
        return out;
      case TokenType::word:
        return word(token, first);
      default:
        if (token.type != TokenType::mark || token.text != "(") {
          --at_;
          fail_at(cat("unexpected ", found()));
        }
        parenthesis(out);
    }
    while (is(TokenType::field)) out.fields.push_back(take().text.substr(1));
    return out;
  }

  void parenthesis(Operand& out) {
    const Scope scope(*this);
    out.base = Operand::Base::pipe;
    out.pipe = std::make_shared<const Pipe>(pipeline(0));
    skip_space();
    if (!take_if(TokenType::mark, ")")) fail_at("a ) is missing");
  }

  // A function, which as an argument is called without any.
  Operand word(const Token& token, bool first) {
    Operand out{.base = Operand::Base::literal};
    if (token.text == "true" || token.text == "false") {
      out.literal = of_bool(token.text == "true");
      return out;
    }
    if (token.text == "nil") {
      if (first) fail_at("nil is not a command");
      return out;
    }
    out.base = Operand::Base::function;
    out.function = find_function(token.text);
    if (out.function == nullptr) fail_at(cat("function \"", token.text, "\" is not known here"));
    if (!first && out.function->least > 0) {
      fail_at(cat(token.text, " needs arguments: put it into parentheses"));
    }
    return out;
  }

  const std::vector<Token> tokens_;
  const TemplateLimits& limits_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  std::string ended_;
  std::vector<std::string> variables_;
  Template out_;
};

void check_calls(const Nodes& nodes, const Template& all) {
  for (const Node& node : nodes) {
    const bool known =
        node.type != Node::Type::call ||
        std::ranges::count(all.named, node.text,
                           &std::pair<std::string, std::shared_ptr<const Nodes>>::first) > 0;
    check(known, "template", "line ", node.line, ": template \"", node.text, "\" is not defined");
    if (node.body) check_calls(*node.body, all);
    if (node.otherwise) check_calls(*node.otherwise, all);
  }
}

}  // namespace

Template parse(std::string_view source, const TemplateLimits& limits) {
  const auto size = static_cast<int64_t>(source.size());
  check(size <= limits.max_source_bytes, "template", "its ", size, " bytes are more than the ",
        limits.max_source_bytes, " allowed");
  Template out = Parser(tokens_of(source), limits).run();
  check_calls(*out.root, out);
  for (const auto& [name, nodes] : out.named) check_calls(*nodes, out);
  return out;
}

}  // namespace rbee::text::go
