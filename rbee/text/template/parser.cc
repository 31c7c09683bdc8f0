#include "rbee/text/template/parser.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "rbee/text/template/expression_parser.h"
#include "rbee/text/template/lexer.h"
#include "rbee/text/template/token_stream.h"

namespace rbee::text::jinja {
namespace {

// The statements of a template.
class Parser {
 public:
  Parser(Template& out, int max_depth) : in_(out, max_depth), expressions_(in_) {}

  Body run() { return body({}); }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Up to the tag that starts with one of `ends`, which is left to be read, or to the end.
  Body body(Names ends) {
    const TokenStream::Level level(in_);
    Body out;
    while (!in_.at(TokenType::end)) {
      if (in_.at(TokenType::block_begin)) {
        in_.next();
        if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return in_.at_name(end); })) {
          return out;
        }
        out.push_back(statement());
        in_.expect(TokenType::block_end, "the end of the tag");
      } else {
        out.push_back(output());
      }
    }
    if (ends.size() > 0) in_.unexpected(cat("{% ", *(ends.end() - 1), " %}"));
    return out;
  }

  // The rest of a tag, and what follows up to one of `ends`.
  Body block(Names ends) {
    in_.skip_symbol(":");
    in_.expect(TokenType::block_end, "the end of the tag");
    return body(ends);
  }

  Body block_until(std::string_view end) {
    Body out = block({end});
    in_.next();
    return out;
  }

  // A body outside of the loops around it.
  Body separate_block_until(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body out = block_until(end);
    loops_ = loops;
    return out;
  }

  // Data and {{ ... }} up to the next tag.
  const Stmt* output() {
    auto* node = in_.make<OutputStmt>(in_.line());
    while (true) {
      const int32_t line = in_.line();
      if (in_.at(TokenType::data)) {
        const std::string text(in_.next().text);
        const auto* value = in_.out().constants.make<Text>(int64_t(text.size()), text);
        node->items.push_back(in_.make<ConstantExpr>(line, Value(value)));
      } else if (in_.at(TokenType::variable_begin)) {
        in_.next();
        node->items.push_back(expressions_.tuple());
        in_.expect(TokenType::variable_end, "'}}'");
      } else {
        return node;
      }
    }
  }

  const Stmt* statement() {
    const Token token = in_.expect(TokenType::name, "the name of a tag");
    const std::string_view name = token.text;
    const int32_t line = token.position.line;
    if (name == "if") return if_else(line);
    if (name == "for") return for_loop(line);
    if (name == "set") return set(line);
    if (name == "macro") return macro(line);
    if (name == "call") return call(line);
    if (name == "filter") return filter(line);
    if (name == "with") return with(line);
    if (name == "print") return print(line);
    if (name == "block") return named_block(line);
    if (name == "generation") {
      auto* node = in_.make<ScopeStmt>(line, false);
      node->body = separate_block_until("endgeneration");
      return node;
    }
    if (name == "break" || name == "continue") return jump(token);
    for (const std::string_view known : {"include", "import", "from", "extends", "autoescape"}) {
      if (name != known) continue;
      throw Failure(Code::unsupported, token.position,
                    cat("{% ", name, " %} is not supported in a chat template"));
    }
    raise_at(token.position, "unknown tag '", name, "'");
  }

  const Stmt* if_else(int32_t line) {
    auto* node = in_.make<IfStmt>(line);
    while (true) {
      const Expr* test = expressions_.tuple(false);
      node->branches.emplace_back(test, block({"elif", "else", "endif"}));
      const Token end = in_.next();
      if (end.text == "elif") continue;
      if (end.text == "else") node->otherwise = block_until("endif");
      return node;
    }
  }

  void reject_loop_variable(const Expr& target) {
    if (target.type == ExprType::name) {
      const auto symbol = static_cast<const NameExpr&>(target).symbol;
      const bool special = in_.out().names[static_cast<size_t>(symbol)] == "loop";
      if (special) raise_at(in_.current().position, "cannot assign to the special variable loop");
    } else if (target.type == ExprType::sequence) {
      for (const Expr* item : static_cast<const SequenceExpr&>(target).items) {
        reject_loop_variable(*item);
      }
    }
  }

  const Stmt* for_loop(int32_t line) {
    auto* node = in_.make<ForStmt>(line);
    node->target = expressions_.target("in", false);
    reject_loop_variable(*node->target);
    in_.expect_name("in");
    node->iterable = expressions_.tuple(false, "recursive");
    if (in_.skip_name("if")) node->filter = expressions_.expression();
    node->recursive = in_.skip_name("recursive");
    ++loops_;
    node->body = block({"else", "endfor"});
    --loops_;
    if (in_.next().text == "else") node->otherwise = block_until("endfor");
    return node;
  }

  const Stmt* set(int32_t line) {
    const Expr* target = expressions_.target({}, true);
    if (loops_ > 0) reject_loop_variable(*target);
    if (in_.skip_symbol("=")) {
      auto* node = in_.make<SetStmt>(line);
      node->target = target;
      node->value = expressions_.tuple();
      return node;
    }
    auto* node = in_.make<SetBlockStmt>(line);
    node->target = target;
    node->filter = expressions_.filters(in_.make<CapturedExpr>(line), false);
    node->body = block_until("endset");
    return node;
  }

  void signature(MacroStmt& node) {
    in_.expect_symbol("(");
    while (!in_.at_symbol(")")) {
      if (!node.parameters.empty()) in_.expect_symbol(",");
      const Token name = in_.expect(TokenType::name, "the name of a parameter");
      const Symbol symbol = in_.out().intern(name.text);
      const bool had_default = !node.parameters.empty() && node.parameters.back().second != nullptr;
      for (const auto& [known, unused] : node.parameters) {
        if (known == symbol) raise_at(name.position, "two parameters are named ", name.text);
      }
      const Expr* value = in_.skip_symbol("=") ? expressions_.expression() : nullptr;
      if (had_default && value == nullptr) {
        raise_at(name.position, "the parameter ", name.text,
                 " needs a default like the one before");
      }
      node.parameters.emplace_back(symbol, value);
    }
    in_.next();
  }

  void macro_body(MacroStmt& node, std::string_view end) {
    expressions_.open_macros.push_back(&node);
    node.body = separate_block_until(end);
    expressions_.open_macros.pop_back();
  }

  const Stmt* macro(int32_t line) {
    auto* node = in_.make<MacroStmt>(line);
    node->name = in_.out().intern(in_.expect(TokenType::name, "the macro's name").text);
    signature(*node);
    macro_body(*node, "endmacro");
    return node;
  }

  const Stmt* call(int32_t line) {
    auto* node = in_.make<CallBlockStmt>(line);
    auto* caller = in_.make<MacroStmt>(line);
    caller->name = in_.out().intern("caller");
    if (in_.at_symbol("(")) signature(*caller);
    const Position position = in_.current().position;
    const Expr* callee = expressions_.expression();
    if (callee->type != ExprType::call) raise_at(position, "expected a call");
    node->call = static_cast<const CallExpr*>(callee);
    node->caller = caller;
    macro_body(*caller, "endcall");
    return node;
  }

  const Stmt* filter(int32_t line) {
    auto* node = in_.make<FilterBlockStmt>(line);
    node->filter = expressions_.filters(in_.make<CapturedExpr>(line), true);
    node->body = block_until("endfilter");
    return node;
  }

  const Stmt* with(int32_t line) {
    auto* node = in_.make<WithStmt>(line);
    while (!in_.at(TokenType::block_end)) {
      if (!node->assignments.empty()) in_.expect_symbol(",");
      const Expr* target = expressions_.target({}, false);
      in_.expect_symbol("=");
      node->assignments.emplace_back(target, expressions_.expression());
    }
    node->body = block_until("endwith");
    return node;
  }

  const Stmt* print(int32_t line) {
    auto* node = in_.make<OutputStmt>(line);
    while (!in_.at(TokenType::block_end)) {
      if (!node->items.empty()) in_.expect_symbol(",");
      node->items.push_back(expressions_.expression());
    }
    return node;
  }

  const Stmt* named_block(int32_t line) {
    const Token name = in_.expect(TokenType::name, "the block's name");
    const bool scoped = in_.skip_name("scoped");
    auto* node = in_.make<ScopeStmt>(line, !scoped);
    node->body = separate_block_until("endblock");
    in_.skip_name(name.text);
    return node;
  }

  const Stmt* jump(const Token& token) {
    if (loops_ == 0) raise_at(token.position, "{% ", token.text, " %} is outside of a loop");
    const bool is_break = token.text == "break";
    return in_.make<JumpStmt>(token.position.line,
                              is_break ? StmtType::loop_break : StmtType::loop_continue);
  }

  TokenStream in_;
  ExpressionParser expressions_;
  int loops_ = 0;
};

}  // namespace

std::unique_ptr<const Template> parse(std::string_view source, const TemplateLimits& limits) {
  if (static_cast<int64_t>(source.size()) > limits.max_source_bytes) {
    raise("the template has ", source.size(), " bytes, more than ", limits.max_source_bytes);
  }
  auto out = std::make_unique<Template>(limits);
  out->source = normalize_source(source);
  out->body = Parser(*out, limits.max_depth).run();
  return out;
}

}  // namespace rbee::text::jinja
