#include "rbee/text/template/natives.h"

#include <algorithm>
#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

// One step of a path: digits are an index, all else a key.
Value part_of_path(Runtime& runtime, std::string_view part) {
  const bool number = !part.empty() && part.size() < 18 &&
                      part.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number) return runtime.text(part);
  return *parse_integer(runtime.heap(), part, 10);
}

}  // namespace

Native find_native(std::span<const NamedNative> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const NamedNative& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : found->function;
}

Native find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), sequence_filters(), selection_filters(), number_filters()}) {
    if (const Native found = find_native(table, name)) return found;
  }
  return nullptr;
}

Native find_method(const Value& self, std::string_view name) {
  if (self.is(Kind::dict)) return find_native(dict_methods(), name);
  if (self.is(Kind::text)) {
    for (const auto table : {text_methods(), split_methods(), predicate_methods()}) {
      if (const Native found = find_native(table, name)) return found;
    }
    return nullptr;
  }
  if (!self.is(Kind::sequence)) return nullptr;
  const Form form = self.sequence().form;
  if (form != Form::list && form != Form::tuple) return nullptr;
  if (form == Form::tuple && name == "copy") return nullptr;
  return find_native(list_methods(), name);
}

Value follow_path(Runtime& runtime, const Value& item, const Value& path) {
  if (path.is(Kind::none)) return item;
  if (!path.is(Kind::text)) return subscript(runtime, item, path);
  Value value = item;
  std::string_view rest = path.text().bytes;
  while (true) {
    const size_t dot = rest.find('.');
    runtime.step();
    value = subscript(runtime, value, part_of_path(runtime, rest.substr(0, dot)));
    if (dot == std::string_view::npos) return value;
    rest = rest.substr(dot + 1);
  }
}

Value ignore_case(Runtime& runtime, const Value& value) {
  return value.is(Kind::text) ? runtime.text(to_lower(value.text().bytes)) : value;
}

}  // namespace rbee::text::jinja
