// The expressions of Interpreter.

#include "rbee/text/template/failure.h"
#include "rbee/text/template/interpreter.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {

Value Interpreter::evaluate(const Expr& expr) {
  const Depth depth(runtime_);
  runtime_.step();
  runtime_.line = expr.line;
  return dispatch(expr);
}

Value Interpreter::dispatch(const Expr& expr) {
  switch (expr.type) {
    case ExprType::constant:
      return static_cast<const ConstantExpr&>(expr).value;
    case ExprType::name:
      return lookup(static_cast<const NameExpr&>(expr).symbol);
    case ExprType::sequence:
      return sequence(static_cast<const SequenceExpr&>(expr));
    case ExprType::dict:
      return dict(static_cast<const DictExpr&>(expr));
    case ExprType::unary:
      return unary(static_cast<const UnaryExpr&>(expr));
    case ExprType::binary:
      return binary_op(static_cast<const BinaryExpr&>(expr));
    case ExprType::concat:
      return concat(static_cast<const ConcatExpr&>(expr));
    case ExprType::compare:
      return comparison(static_cast<const CompareExpr&>(expr));
    case ExprType::conditional:
      return conditional(static_cast<const ConditionalExpr&>(expr));
    case ExprType::attribute: {
      const auto& access = static_cast<const AttributeExpr&>(expr);
      return attribute(runtime_, evaluate(*access.object), access.name);
    }
    case ExprType::item:
      return item(static_cast<const ItemExpr&>(expr));
    case ExprType::call:
      return call(static_cast<const CallExpr&>(expr), nullptr);
    case ExprType::filter:
    case ExprType::test:
      return apply(static_cast<const ApplyExpr&>(expr));
    case ExprType::captured:
      return captured_;
    case ExprType::slice:
    case ExprType::space_field:
      break;  // parts of other nodes
  }
  raise("not an expression");
}

Value Interpreter::sequence(const SequenceExpr& expr) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const Expr* value : expr.items) items.push_back(evaluate(*value));
  return runtime_.sequence(expr.form, std::move(items));
}

Value Interpreter::dict(const DictExpr& expr) {
  Dict* out = runtime_.dict();
  for (const auto& [key, value] : expr.entries) {
    const Value name = evaluate(*key);
    runtime_.set(*out, name, evaluate(*value));
  }
  return Value(static_cast<const Dict*>(out));
}

Value Interpreter::unary(const UnaryExpr& expr) {
  const Value value = evaluate(*expr.operand);
  if (expr.op == UnaryOp::logical_not) return Value(!truth(value));
  if (expr.op == UnaryOp::negate) return negate(runtime_, value);
  if (value.is(Kind::undefined)) raise_undefined(value);
  if (!value.is_number()) raise("'+' does not work for '", type_name(value), "'");
  return value.is(Kind::boolean) ? Value(value.integer()) : value;
}

Value Interpreter::binary_op(const BinaryExpr& expr) {
  const Value left = evaluate(*expr.left);
  if (expr.op == BinaryOp::logical_and) return truth(left) ? evaluate(*expr.right) : left;
  if (expr.op == BinaryOp::logical_or) return truth(left) ? left : evaluate(*expr.right);
  const Value right = evaluate(*expr.right);
  return binary(runtime_, expr.op, left, right);
}

Value Interpreter::concat(const ConcatExpr& expr) {
  std::string out;
  for (const Expr* value : expr.items) append_text(runtime_, out, evaluate(*value));
  return runtime_.text(std::move(out));
}

Value Interpreter::comparison(const CompareExpr& expr) {
  Value left = evaluate(*expr.first);
  for (const auto& [op, operand] : expr.rest) {
    const Value right = evaluate(*operand);
    if (!compare(runtime_, op, left, right)) return Value(false);
    left = right;
  }
  return Value(true);
}

Value Interpreter::conditional(const ConditionalExpr& expr) {
  if (truth(evaluate(*expr.test))) return evaluate(*expr.yes);
  if (expr.no != nullptr) return evaluate(*expr.no);
  return runtime_.undefined("the inline if-expression was false and has no else");
}

Value Interpreter::item(const ItemExpr& expr) {
  const Value object = evaluate(*expr.object);
  if (expr.key->type != ExprType::slice) return subscript(runtime_, object, evaluate(*expr.key));
  const auto& part = static_cast<const SliceExpr&>(*expr.key);
  const auto bound = [this](const Expr* bound_expr) {
    return bound_expr != nullptr ? evaluate(*bound_expr) : Value();
  };
  const Value start = bound(part.start);
  const Value stop = bound(part.stop);
  return slice(runtime_, object, start, stop, bound(part.step));
}

Value Interpreter::apply(const ApplyExpr& expr) {
  const Value operand = evaluate(*expr.operand);
  const Args args = arguments(expr.arguments);
  runtime_.line = expr.line;
  if (expr.function == nullptr) {
    const bool is_filter = expr.type == ExprType::filter;
    raise("no ", is_filter ? "filter" : "test", " is named '", expr.name, "'");
  }
  return expr.function(runtime_, operand, args);
}

Args Interpreter::arguments(const Arguments& arguments) {
  Args out;
  for (const Expr* expr : arguments.positional) out.positional.push_back(evaluate(*expr));
  for (const auto& [name, expr] : arguments.named) out.named.emplace_back(name, evaluate(*expr));
  if (arguments.list != nullptr) {
    for (const Value& value : items_of(runtime_, evaluate(*arguments.list))) {
      out.positional.push_back(value);
    }
  }
  if (arguments.dict == nullptr) return out;
  const Value named = evaluate(*arguments.dict);
  if (!named.is(Kind::dict)) raise("the argument after ** must be a mapping");
  for (const auto& [key, value] : named.dict().entries) {
    if (!key.is(Kind::text)) raise("keywords must be strings");
    runtime_.step(static_cast<int64_t>(out.named.size() / 16) + 1);
    for (const auto& [known, unused] : out.named) {
      if (known == key.text().bytes) raise("the keyword argument '", known, "' is given twice");
    }
    out.named.emplace_back(key.text().bytes, value);
  }
  return out;
}

Value Interpreter::call(const CallExpr& expr, const Value* caller) {
  const Value callee = evaluate(*expr.callee);
  Args args = arguments(expr.arguments);
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  runtime_.line = expr.line;
  return jinja::call(runtime_, callee, args);
}

}  // namespace rbee::text::jinja
