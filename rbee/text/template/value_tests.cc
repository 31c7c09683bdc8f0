// The tests after `is`.

#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {
namespace {

template <bool (*predicate)(const Value&)>
Value check_kind(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("test", args, {});
  return Value(predicate(self));
}

bool is_defined(const Value& value) {
  return !value.is(Kind::undefined);
}
bool is_undefined(const Value& value) {
  return value.is(Kind::undefined);
}
bool is_none(const Value& value) {
  return value.is(Kind::none);
}
bool is_boolean(const Value& value) {
  return value.is(Kind::boolean);
}
bool is_true(const Value& value) {
  return value.is(Kind::boolean) && value.boolean();
}
bool is_false(const Value& value) {
  return value.is(Kind::boolean) && !value.boolean();
}
bool is_integer(const Value& value) {
  return value.is(Kind::integer) || value.is(Kind::wide);
}
bool is_float(const Value& value) {
  return value.is(Kind::floating);
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_string(const Value& value) {
  return value.is(Kind::text);
}
bool is_mapping(const Value& value) {
  return value.is(Kind::dict);
}
bool is_sequence(const Value& value) {
  if (value.is(Kind::sequence)) return value.sequence().has_subscript();
  return value.is(Kind::text) || value.is(Kind::dict) || value.is(Kind::undefined);
}
bool is_callable(const Value& value) {
  // An Undefined has a __call__, which throws.
  return value.is(Kind::undefined) || (value.is(Kind::custom) && value.custom().callable());
}
bool is_escaped(const Value& value) {
  return value.is(Kind::text) && value.text().safe;
}

Value has_remainder(Runtime& runtime, const Value& self, const Value& divisor, double wanted) {
  const Value rest = binary(runtime, BinaryOp::modulo, self, divisor);
  return Value(rest.is_number() && rest.number() == wanted);
}

Value odd(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("odd", args, {});
  return has_remainder(runtime, self, Value(int64_t{2}), 1);
}

Value even(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("even", args, {});
  return has_remainder(runtime, self, Value(int64_t{2}), 0);
}

Value divisibleby(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("divisibleby", args, {"num"}, 1);
  return has_remainder(runtime, self, *given[0], 0);
}

// str(self).islower() and isupper().
template <bool lower>
Value has_case(Runtime& runtime, const Value& self, const Args& args) {
  const Value text = self.is(Kind::text) ? self : runtime.text(to_text(runtime, self));
  return find_method(text, lower ? "islower" : "isupper")(runtime, text, args);
}

Value names_filter(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("filter", args, {});
  require_hashable(self);
  return Value(self.is(Kind::text) && find_filter(self.text().bytes) != nullptr);
}

Value names_test(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("test", args, {});
  require_hashable(self);
  return Value(self.is(Kind::text) && find_test(self.text().bytes) != nullptr);
}

Value iterable(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("iterable", args, {});
  return Value(is_iterable(self));
}

Value sameas(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("sameas", args, {"other"}, 1);
  if (self.is(Kind::text)) runtime.step_bytes(self.text().bytes.size());
  return Value(self.same_as(*given[0]));
}

template <CompareOp op>
Value compared(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("comparison", args, {"other"}, 1);
  return Value(compare(runtime, op, self, *given[0]));
}

constexpr auto kTests = std::to_array<NamedNative>({
    {"defined", check_kind<is_defined>},
    {"undefined", check_kind<is_undefined>},
    {"none", check_kind<is_none>},
    {"boolean", check_kind<is_boolean>},
    {"true", check_kind<is_true>},
    {"false", check_kind<is_false>},
    {"integer", check_kind<is_integer>},
    {"float", check_kind<is_float>},
    {"number", check_kind<is_number>},
    {"string", check_kind<is_string>},
    {"mapping", check_kind<is_mapping>},
    {"sequence", check_kind<is_sequence>},
    {"callable", check_kind<is_callable>},
    {"escaped", check_kind<is_escaped>},
    {"iterable", iterable},
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisibleby},
    {"lower", has_case<true>},
    {"upper", has_case<false>},
    {"filter", names_filter},
    {"test", names_test},
    {"sameas", sameas},
    {"in", compared<CompareOp::in>},
    {"eq", compared<CompareOp::eq>},
    {"equalto", compared<CompareOp::eq>},
    {"==", compared<CompareOp::eq>},
    {"ne", compared<CompareOp::ne>},
    {"!=", compared<CompareOp::ne>},
    {"lt", compared<CompareOp::lt>},
    {"lessthan", compared<CompareOp::lt>},
    {"<", compared<CompareOp::lt>},
    {"le", compared<CompareOp::le>},
    {"<=", compared<CompareOp::le>},
    {"gt", compared<CompareOp::gt>},
    {"greaterthan", compared<CompareOp::gt>},
    {">", compared<CompareOp::gt>},
    {"ge", compared<CompareOp::ge>},
    {">=", compared<CompareOp::ge>},
});

}  // namespace

Native find_test(std::string_view name) {
  return find_native(kTests, name);
}

}  // namespace rbee::text::jinja
