#include "rbee/text/template/expression_parser.h"

#include <algorithm>
#include <array>
#include <optional>

namespace rbee::text::jinja {
namespace {

std::optional<CompareOp> compare_op(const Token& token) {
  constexpr std::array<std::pair<std::string_view, CompareOp>, 6> kOps = {{
      {"==", CompareOp::eq},
      {"!=", CompareOp::ne},
      {"<", CompareOp::lt},
      {"<=", CompareOp::le},
      {">", CompareOp::gt},
      {">=", CompareOp::ge},
  }};
  for (const auto& [symbol, op] : kOps) {
    if (token.is_symbol(symbol)) return op;
  }
  return std::nullopt;
}

std::optional<BinaryOp> product_op(const Token& token) {
  if (token.is_symbol("*")) return BinaryOp::multiply;
  if (token.is_symbol("/")) return BinaryOp::divide;
  if (token.is_symbol("//")) return BinaryOp::floor_divide;
  if (token.is_symbol("%")) return BinaryOp::modulo;
  return std::nullopt;
}

}  // namespace

const Expr* ExpressionParser::conditional() {
  const TokenStream::Level level(in_);
  const Expr* node = logical_or();
  while (in_.at_name("if")) {
    const int32_t line = in_.next().position.line;
    const Expr* test = logical_or();
    const Expr* no = in_.skip_name("else") ? conditional() : nullptr;
    node = in_.make<ConditionalExpr>(line, test, node, no);
  }
  return node;
}

const Expr* ExpressionParser::logical_or() {
  const Expr* node = logical_and();
  while (in_.skip_name("or")) {
    const int32_t line = in_.line();
    node = in_.make<BinaryExpr>(line, BinaryOp::logical_or, node, logical_and());
  }
  return node;
}

const Expr* ExpressionParser::logical_and() {
  const Expr* node = logical_not();
  while (in_.skip_name("and")) {
    const int32_t line = in_.line();
    node = in_.make<BinaryExpr>(line, BinaryOp::logical_and, node, logical_not());
  }
  return node;
}

const Expr* ExpressionParser::logical_not() {
  if (!in_.at_name("not")) return compare();
  const TokenStream::Level level(in_);
  const int32_t line = in_.next().position.line;
  return in_.make<UnaryExpr>(line, UnaryOp::logical_not, logical_not());
}

const Expr* ExpressionParser::compare() {
  const int32_t line = in_.line();
  const Expr* first = sum();
  CompareExpr* node = nullptr;
  while (true) {
    std::optional<CompareOp> op = compare_op(in_.current());
    if (op || in_.at_name("in")) {
      in_.next();
      if (!op) op = CompareOp::in;
    } else if (in_.at_name("not") && in_.look().is_name("in")) {
      in_.next();
      in_.next();
      op = CompareOp::not_in;
    } else {
      break;
    }
    if (node == nullptr) node = in_.make<CompareExpr>(line, first);
    node->rest.emplace_back(*op, sum());
  }
  return node != nullptr ? node : first;
}

const Expr* ExpressionParser::sum() {
  const Expr* node = concat();
  while (in_.at_symbol("+") || in_.at_symbol("-")) {
    const Token token = in_.next();
    const BinaryOp op = token.text == "+" ? BinaryOp::add : BinaryOp::subtract;
    node = in_.make<BinaryExpr>(token.position.line, op, node, concat());
  }
  return node;
}

const Expr* ExpressionParser::concat() {
  const int32_t line = in_.line();
  std::vector<const Expr*> items{product()};
  while (in_.skip_symbol("~")) items.push_back(product());
  if (items.size() == 1) return items[0];
  return in_.make<ConcatExpr>(line, std::move(items));
}

const Expr* ExpressionParser::product() {
  const Expr* node = power();
  while (const auto op = product_op(in_.current())) {
    const int32_t line = in_.next().position.line;
    node = in_.make<BinaryExpr>(line, *op, node, power());
  }
  return node;
}

const Expr* ExpressionParser::power() {
  const Expr* node = unary();
  while (in_.at_symbol("**")) {
    const int32_t line = in_.next().position.line;
    node = in_.make<BinaryExpr>(line, BinaryOp::power, node, unary());
  }
  return node;
}

const Expr* ExpressionParser::unary(bool with_filters) {
  const Expr* node = nullptr;
  if (in_.at_symbol("-") || in_.at_symbol("+")) {
    const TokenStream::Level level(in_);
    const Token token = in_.next();
    const UnaryOp op = token.text == "-" ? UnaryOp::negate : UnaryOp::plus;
    node = in_.make<UnaryExpr>(token.position.line, op, unary(false));
  } else {
    node = primary();
  }
  node = postfix(node);
  return with_filters ? filters_and_tests(node) : node;
}

Value ExpressionParser::integer(const Token& token) {
  return decode_integer(token, in_.out().constants);
}

const Expr* ExpressionParser::primary(bool with_space) {
  const Token& token = in_.current();
  const int32_t line = token.position.line;
  if (token.type == TokenType::name) return name(in_.next(), with_space);
  if (token.type == TokenType::string) return strings();
  if (token.type == TokenType::integer) return constant(line, integer(in_.next()));
  if (token.type == TokenType::floating) return constant(line, Value(decode_float(in_.next())));
  if (token.is_symbol("[")) return list();
  if (token.is_symbol("{")) return dict();
  if (!in_.skip_symbol("(")) in_.unexpected("an expression");
  const Expr* node = tuple(true, {}, true);
  in_.expect_symbol(")");
  return node;
}

const Expr* ExpressionParser::name(const Token& token, bool with_space) {
  const int32_t line = token.position.line;
  if (token.text == "true" || token.text == "True") return constant(line, Value(true));
  if (token.text == "false" || token.text == "False") return constant(line, Value(false));
  if (token.text == "none" || token.text == "None") return constant(line, Value());
  const Symbol symbol = in_.out().intern(token.text);
  if (with_space && in_.skip_symbol(".")) {
    const Token field = in_.expect(TokenType::name, "a name");
    return in_.make<SpaceFieldExpr>(line, symbol, field.text);
  }
  for (MacroStmt* macro : open_macros) {
    macro->uses_caller |= token.text == "caller";
    macro->uses_varargs |= token.text == "varargs";
    macro->uses_kwargs |= token.text == "kwargs";
  }
  return in_.make<NameExpr>(line, symbol);
}

const Expr* ExpressionParser::strings() {
  const int32_t line = in_.line();
  std::string text;
  while (in_.at(TokenType::string)) text += decode_string(in_.next());
  const auto size = static_cast<int64_t>(text.size());
  return constant(line, Value(in_.out().constants.make<Text>(size, std::move(text))));
}

const Expr* ExpressionParser::list() {
  const int32_t line = in_.next().position.line;
  std::vector<const Expr*> items;
  while (!in_.at_symbol("]")) {
    if (!items.empty()) in_.expect_symbol(",");
    if (in_.at_symbol("]")) break;
    items.push_back(expression());
  }
  in_.next();
  return in_.make<SequenceExpr>(line, Form::list, std::move(items));
}

const Expr* ExpressionParser::dict() {
  auto* node = in_.make<DictExpr>(in_.next().position.line);
  while (!in_.at_symbol("}")) {
    if (!node->entries.empty()) in_.expect_symbol(",");
    if (in_.at_symbol("}")) break;
    const Expr* key = expression();
    in_.expect_symbol(":");
    node->entries.emplace_back(key, expression());
  }
  in_.next();
  return node;
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  if (in_.at(TokenType::variable_end) || in_.at(TokenType::block_end)) return true;
  return in_.at_symbol(")") || (!end_name.empty() && in_.at_name(end_name));
}

const Expr* ExpressionParser::tuple(bool with_conditional, std::string_view end_name,
                                    bool in_parentheses) {
  const int32_t line = in_.line();
  std::vector<const Expr*> items;
  bool is_tuple = false;
  while (!at_tuple_end(end_name)) {
    items.push_back(with_conditional ? expression() : logical_or());
    if (!in_.at_symbol(",")) break;
    in_.next();
    is_tuple = true;
  }
  if (is_tuple || (items.empty() && in_parentheses)) {
    return in_.make<SequenceExpr>(line, Form::tuple, std::move(items));
  }
  if (items.empty()) in_.unexpected("an expression");
  return items[0];
}

const Expr* ExpressionParser::target(std::string_view end_name, bool with_space) {
  const int32_t line = in_.line();
  std::vector<const Expr*> items;
  bool is_tuple = false;
  while (!at_tuple_end(end_name)) {
    items.push_back(primary(with_space));
    require_target(items.back());
    if (!in_.at_symbol(",")) break;
    in_.next();
    is_tuple = true;
  }
  if (items.empty()) in_.unexpected("a name");
  if (!is_tuple) return items[0];
  return in_.make<SequenceExpr>(line, Form::tuple, std::move(items));
}

void ExpressionParser::require_target(const Expr* node) const {
  if (node->type == ExprType::name || node->type == ExprType::space_field) return;
  const auto* list =
      node->type == ExprType::sequence ? static_cast<const SequenceExpr*>(node) : nullptr;
  if (list == nullptr || list->form != Form::tuple) {
    raise_at(in_.current().position, "can assign to names only");
  }
  for (const Expr* item : list->items) require_target(item);
}

const Expr* ExpressionParser::postfix(const Expr* node) {
  while (true) {
    if (in_.at_symbol(".") || in_.at_symbol("[")) {
      node = subscript(node);
    } else if (in_.at_symbol("(")) {
      node = call(node);
    } else {
      return node;
    }
  }
}

const Expr* ExpressionParser::filters_and_tests(const Expr* node) {
  while (true) {
    if (in_.at_symbol("|")) {
      node = filters(node, false);
    } else if (in_.at_name("is")) {
      node = test(node);
    } else if (in_.at_symbol("(")) {
      node = call(node);
    } else {
      return node;
    }
  }
}

const Expr* ExpressionParser::subscript(const Expr* object) {
  const Token open = in_.next();
  const int32_t line = open.position.line;
  if (open.text == ".") {
    if (in_.at(TokenType::name)) {
      return in_.make<AttributeExpr>(line, object, in_.next().text);
    }
    const Token number = in_.expect(TokenType::integer, "a name or a number");
    return in_.make<ItemExpr>(line, object, constant(line, integer(number)));
  }
  std::vector<const Expr*> items;
  while (!in_.at_symbol("]")) {
    if (!items.empty()) in_.expect_symbol(",");
    items.push_back(subscript_item());
  }
  in_.next();
  if (items.size() == 1) return in_.make<ItemExpr>(line, object, items[0]);
  for (const Expr* item : items) {
    if (item->type == ExprType::slice) raise_at(open.position, "a slice cannot be a key");
  }
  const Expr* key = in_.make<SequenceExpr>(line, Form::tuple, std::move(items));
  return in_.make<ItemExpr>(line, object, key);
}

const Expr* ExpressionParser::subscript_item() {
  const int32_t line = in_.line();
  const auto at_end = [&] { return in_.at_symbol("]") || in_.at_symbol(","); };
  const Expr* start = in_.at_symbol(":") ? nullptr : expression();
  if (!in_.skip_symbol(":")) return start;
  auto* slice = in_.make<SliceExpr>(line);
  slice->start = start;
  if (!in_.at_symbol(":") && !at_end()) slice->stop = expression();
  if (in_.skip_symbol(":") && !at_end()) slice->step = expression();
  return slice;
}

const Expr* ExpressionParser::call(const Expr* callee) {
  auto* node = in_.make<CallExpr>(in_.line(), callee);
  node->arguments = arguments();
  return node;
}

Arguments ExpressionParser::arguments() {
  Arguments out;
  in_.expect_symbol("(");
  bool first = true;
  while (!in_.at_symbol(")")) {
    if (!first) {
      in_.expect_symbol(",");
      if (in_.at_symbol(")")) break;
    }
    argument(out);
    first = false;
  }
  in_.next();
  return out;
}

void ExpressionParser::argument(Arguments& out) {
  const Position position = in_.current().position;
  const auto require = [&](bool condition) {
    if (!condition) raise_at(position, "misplaced argument of a call");
  };
  if (in_.skip_symbol("*")) {
    require(out.list == nullptr && out.dict == nullptr);
    out.list = expression();
  } else if (in_.skip_symbol("**")) {
    require(out.dict == nullptr);
    out.dict = expression();
  } else if (in_.at(TokenType::name) && in_.look().is_symbol("=")) {
    require(out.dict == nullptr);
    const std::string_view key = in_.next().text;
    const bool doubled = std::any_of(out.named.begin(), out.named.end(),
                                     [&](const auto& known) { return known.first == key; });
    if (doubled) raise_at(position, "the argument ", key, " is given twice");
    in_.next();
    out.named.emplace_back(key, expression());
  } else {
    require(out.list == nullptr && out.dict == nullptr && out.named.empty());
    out.positional.push_back(expression());
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name(in_.expect(TokenType::name, "a name").text);
  while (in_.skip_symbol(".")) {
    name += '.';
    name += in_.expect(TokenType::name, "a name").text;
  }
  return name;
}

const Expr* ExpressionParser::filters(const Expr* operand, bool first_without_bar) {
  while (first_without_bar || in_.skip_symbol("|")) {
    first_without_bar = false;
    auto* node = in_.make<ApplyExpr>(in_.line(), ExprType::filter, operand);
    node->name = dotted_name();
    node->function = find_filter(node->name);
    if (in_.at_symbol("(")) node->arguments = arguments();
    operand = node;
  }
  return operand;
}

bool ExpressionParser::starts_test_argument() const {
  if (in_.at_name("else") || in_.at_name("or") || in_.at_name("and")) return false;
  for (const TokenType type :
       {TokenType::name, TokenType::string, TokenType::integer, TokenType::floating}) {
    if (in_.at(type)) return true;
  }
  return in_.at_symbol("[") || in_.at_symbol("{");
}

const Expr* ExpressionParser::test(const Expr* operand) {
  const int32_t line = in_.next().position.line;
  const bool negated = in_.skip_name("not");
  auto* node = in_.make<ApplyExpr>(line, ExprType::test, operand);
  node->name = dotted_name();
  node->function = find_test(node->name);
  if (in_.at_symbol("(")) {
    node->arguments = arguments();
  } else if (starts_test_argument()) {
    if (in_.at_name("is")) raise_at(in_.current().position, "tests with `is` cannot be chained");
    node->arguments.positional.push_back(postfix(primary()));
  }
  if (!negated) return node;
  return in_.make<UnaryExpr>(line, UnaryOp::logical_not, node);
}

}  // namespace rbee::text::jinja
