// The operators + - * / // % ** on values, with Python's rules for signs and types.

#include <cmath>
#include <limits>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {
namespace {

[[noreturn]] void raise_zero() {
  raise("division by zero");
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) raise_zero();
  if (a == std::numeric_limits<int64_t>::min() && b == -1) raise_overflow();
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) raise_zero();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double modulo(double a, double b) {
  if (b == 0) raise_zero();
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  if (b == 0) raise_zero();
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  // The quotient is whole but for rounding: take the nearest.
  return quotient == 0 ? std::copysign(0.0, a / b) : std::round(quotient);
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) raise_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) raise_overflow();
  }
  return result;
}

Value power(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral() && b.integer() >= 0) {
    return Value(integer_power(a.integer(), b.integer()));
  }
  const double base = a.number();
  const double exponent = b.number();
  if (base == 0 && exponent < 0) raise_zero();
  const double result = std::pow(base, exponent);
  const bool finite = std::isfinite(base) && std::isfinite(exponent);
  if (finite && std::isnan(result)) raise("complex numbers are not supported");
  if (finite && std::isinf(result)) raise("the result of ** is too large");
  return Value(result);
}

Value integer_op(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::floor_divide:
      result = floor_divide(a, b);
      break;
    default:
      result = modulo(a, b);
      break;
  }
  if (overflow) raise_overflow();
  return Value(result);
}

Value float_op(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return Value(a + b);
    case BinaryOp::subtract:
      return Value(a - b);
    case BinaryOp::multiply:
      return Value(a * b);
    case BinaryOp::floor_divide:
      return Value(floor_divide(a, b));
    default:
      return Value(modulo(a, b));
  }
}

Value numeric(BinaryOp op, const Value& a, const Value& b) {
  const bool wide = a.is(Kind::wide) || b.is(Kind::wide);
  if (wide && a.is_int() && b.is_int() && op != BinaryOp::divide) raise_overflow();
  if (op == BinaryOp::power) return power(a, b);
  if (op == BinaryOp::divide) {
    if (b.number() == 0) raise_zero();
    return Value(a.number() / b.number());
  }
  if (a.is_integral() && b.is_integral()) return integer_op(op, a.integer(), b.integer());
  return float_op(op, a.number(), b.number());
}

Value add_texts(Runtime& runtime, const Value& a, const Value& b) {
  const bool safe = a.text().safe || b.text().safe;
  if (safe) {
    return runtime.text(escape_markup(runtime, a) + escape_markup(runtime, b), true);
  }
  const std::string& left = a.text().bytes;
  const std::string& right = b.text().bytes;
  runtime.heap().require(static_cast<int64_t>(left.size() + right.size()));
  std::string out;
  out.reserve(left.size() + right.size());
  out.append(left).append(right);
  return runtime.text(std::move(out));
}

bool same_list_form(const Value& a, const Value& b) {
  if (!a.is(Kind::sequence) || !b.is(Kind::sequence)) return false;
  const Form form = a.sequence().form;
  return form == b.sequence().form && (form == Form::list || form == Form::tuple);
}

Value add_sequences(Runtime& runtime, const Value& a, const Value& b) {
  const std::vector<Value>& left = a.sequence().items;
  const std::vector<Value>& right = b.sequence().items;
  runtime.step(static_cast<int64_t>(left.size() + right.size()));
  std::vector<Value> items = left;
  items.insert(items.end(), right.begin(), right.end());
  return runtime.sequence(a.sequence().form, std::move(items));
}

// How often something of `size` bytes is repeated; checks that the result fits.
size_t repeat_count(Runtime& runtime, size_t size, int64_t count) {
  if (count <= 0 || size == 0) return 0;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(size), count, &bytes)) raise_overflow();
  runtime.heap().require(bytes);
  runtime.step_bytes(static_cast<size_t>(bytes));
  return static_cast<size_t>(count);
}

Value repeat(Runtime& runtime, const Value& value, int64_t count) {
  if (value.is(Kind::text)) {
    const std::string& piece = value.text().bytes;
    std::string out;
    const size_t times = repeat_count(runtime, piece.size(), count);
    out.reserve(times * piece.size());
    for (size_t i = 0; i < times; ++i) out += piece;
    return runtime.text(std::move(out), value.text().safe);
  }
  const std::vector<Value>& piece = value.sequence().items;
  std::vector<Value> out;
  const size_t times = repeat_count(runtime, piece.size() * sizeof(Value), count);
  out.reserve(times * piece.size());
  for (size_t i = 0; i < times; ++i) out.insert(out.end(), piece.begin(), piece.end());
  return runtime.sequence(value.sequence().form, std::move(out));
}

bool repeatable(const Value& value) {
  if (value.is(Kind::text)) return true;
  if (!value.is(Kind::sequence)) return false;
  return value.sequence().form == Form::list || value.sequence().form == Form::tuple;
}

std::string_view symbol_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::subtract:
      return "-";
    case BinaryOp::multiply:
      return "*";
    case BinaryOp::divide:
      return "/";
    case BinaryOp::floor_divide:
      return "//";
    case BinaryOp::modulo:
      return "%";
    case BinaryOp::power:
      return "**";
    case BinaryOp::logical_and:
      return "and";
    case BinaryOp::logical_or:
      return "or";
  }
  return "?";
}

}  // namespace

Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return numeric(op, a, b);
  if (op == BinaryOp::modulo && a.is(Kind::text)) return percent_format(runtime, a, b);
  if (op == BinaryOp::add) {
    if (a.is(Kind::text) && b.is(Kind::text)) return add_texts(runtime, a, b);
    if (same_list_form(a, b)) return add_sequences(runtime, a, b);
  }
  if (op == BinaryOp::multiply) {
    if (repeatable(a) && b.is_integral()) return repeat(runtime, a, b.integer());
    if (repeatable(b) && a.is_integral()) return repeat(runtime, b, a.integer());
  }
  raise_operands(symbol_of(op), a, b);
}

Value negate(Runtime& runtime, const Value& value) {
  if (value.is(Kind::floating)) return Value(-value.floating());
  if (value.is(Kind::undefined)) raise_undefined(value);
  if (!value.is_int()) raise("'-' does not work for '", type_name(value), "'");
  const bool wide = value.is(Kind::wide) || value.integer() == std::numeric_limits<int64_t>::min();
  if (!wide) return Value(-value.integer());
  const std::string decimal = decimal_of(value);
  const bool negative = decimal.starts_with('-');
  return make_integer(runtime.heap(), negative ? decimal.substr(1) : cat('-', decimal));
}

}  // namespace rbee::text::jinja
