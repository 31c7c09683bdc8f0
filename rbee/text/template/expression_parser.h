#pragma once
// The expressions of a template. One method per level of precedence, loosest first.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/template/ast.h"
#include "rbee/text/template/token_stream.h"

namespace rbee::text::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : in_(stream) {}

  const Expr* expression() { return conditional(); }
  // A tuple: expressions separated by commas. `end_name` ends it ("in", "recursive").
  const Expr* tuple(bool with_conditional = true, std::string_view end_name = {},
                    bool in_parentheses = false);
  // A target: what may stand left of = and after `for`. `with_space` allows space.field.
  const Expr* target(std::string_view end_name, bool with_space);
  // name(arguments)|name..., applied to `operand`.
  const Expr* filters(const Expr* operand, bool first_without_bar);
  const Expr* postfix(const Expr* node);
  Value integer(const Token& token);
  const Expr* primary(bool with_space = false);
  // Jinja2's unary: a primary with its postfixes and filters.
  const Expr* unary(bool with_filters = true);

  // Macros whose bodies are being parsed; each is marked if it uses caller, varargs or kwargs.
  std::vector<MacroStmt*> open_macros;

 private:
  const Expr* conditional();
  const Expr* logical_or();
  const Expr* logical_and();
  const Expr* logical_not();
  const Expr* compare();
  const Expr* sum();
  const Expr* concat();
  const Expr* product();
  const Expr* power();
  const Expr* filters_and_tests(const Expr* node);
  const Expr* test(const Expr* operand);
  bool starts_test_argument() const;
  const Expr* subscript(const Expr* object);
  const Expr* subscript_item();
  const Expr* call(const Expr* callee);
  const Expr* name(const Token& token, bool with_space);
  const Expr* strings();
  const Expr* list();
  const Expr* dict();
  bool at_tuple_end(std::string_view end_name) const;
  void require_target(const Expr* node) const;
  Arguments arguments();
  void argument(Arguments& out);
  std::string dotted_name();
  const Expr* constant(int32_t line, Value value) { return in_.make<ConstantExpr>(line, value); }

  TokenStream& in_;
};

}  // namespace rbee::text::jinja
