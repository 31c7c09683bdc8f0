#pragma once
// Python's operations on values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/template/ast.h"
#include "rbee/text/template/runtime.h"

namespace rbee::text::jinja {

bool truth(const Value& value);
bool equal(Runtime& runtime, const Value& a, const Value& b);
// -1, 0, 1; throws for values without an order. Nothing if one is NaN.
std::optional<int> order(Runtime& runtime, const Value& a, const Value& b);
bool less(Runtime& runtime, const Value& a, const Value& b);
bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// Everything but `and` and `or`.
Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b);
Value negate(Runtime& runtime, const Value& value);

// object.name, object[key] and object[start:stop:step] as in the sandbox: a missing one gives an
// Undefined.
Value attribute(Runtime& runtime, const Value& object, std::string_view name);
Value subscript(Runtime& runtime, const Value& object, const Value& key);
Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
            const Value& step);

bool is_iterable(const Value& value);
// The items in order: the characters of a text, the keys of a dict. Throws for values without
// items.
std::vector<Value> items_of(Runtime& runtime, const Value& value);
// len(); throws for values without a length.
int64_t size_of(const Value& value);
// Calls `callee`; throws if it cannot be called.
Value call(Runtime& runtime, const Value& callee, const Args& args);

// Throws the error of using an Undefined.
[[noreturn]] void raise_undefined(const Value& value);
// Throws, naming the types, the error of an operator that does not fit them.
[[noreturn]] void raise_operands(std::string_view symbol, const Value& a, const Value& b);

// str() and repr(); appended within the memory limit.
void append_text(Runtime& runtime, std::string& out, const Value& value);
void append_repr(Runtime& runtime, std::string& out, const Value& value);
std::string to_text(Runtime& runtime, const Value& value);
// A view of a text's own bytes, or of `storage`, which then holds str(value).
std::string_view text_of(Runtime& runtime, const Value& value, std::string& storage);
// repr() of a float.
std::string float_repr(double value);
// & < > ' " as entities, unless `value` is safe already.
std::string escape_markup(Runtime& runtime, const Value& value);

// Formatting (format.cc): "%s" % arguments and "{}".format(arguments).
Value percent_format(Runtime& runtime, const Value& format, const Value& arguments);
Value brace_format(Runtime& runtime, std::string_view format, const Args& arguments);

}  // namespace rbee::text::jinja
