#pragma once
// The tables that find_filter, find_test and find_method search, one per file, and helpers of their
// functions.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rbee/text/template/runtime.h"

namespace rbee::text::jinja {

std::span<const NamedNative> text_filters();
std::span<const NamedNative> sequence_filters();
std::span<const NamedNative> selection_filters();
std::span<const NamedNative> number_filters();
std::span<const NamedNative> text_methods();
std::span<const NamedNative> split_methods();
std::span<const NamedNative> predicate_methods();
std::span<const NamedNative> dict_methods();
std::span<const NamedNative> list_methods();
std::span<const NamedNative> global_functions();  // range, dict, namespace ...

// The first entry with this name, or null.
Native find_native(std::span<const NamedNative> table, std::string_view name);

// "a.b.0" of an item, like the filters' `attribute` argument; a path of none gives the item itself.
Value follow_path(Runtime& runtime, const Value& item, const Value& path);
// Text in lower case; other values unchanged.
Value ignore_case(Runtime& runtime, const Value& value);

// str.replace; a negative `count` is no limit.
std::string replace_text(Runtime& runtime, std::string_view text, std::string_view old,
                         std::string_view with, int64_t count);
// Python's float(text) and int(text, base); nothing if `text` is not a number.
std::optional<double> parse_float(std::string_view text);
std::optional<Value> parse_integer(Heap& heap, std::string_view text, int64_t base);

// The text filters that have a file of their own.
Value filter_tojson(Runtime& runtime, const Value& self, const Args& args);
Value filter_wordwrap(Runtime& runtime, const Value& self, const Args& args);

}  // namespace rbee::text::jinja
