#pragma once
// One field of a format: "%-8.3f" and "{:<8.3f}" become the same description.

#include <cstdint>
#include <string>
#include <string_view>

#include "rbee/text/template/runtime.h"

namespace rbee::text::jinja {

// Both notations end up in one description of a field.
struct Field {
  std::string fill = " ";
  char align = '\0';  // < > ^ or = (between sign and digits); 0: by type
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';  // , or _
  int64_t width = 0;
  int precision = -1;
  char type = '\0';
};

// Reads decimal digits from byte `i` and moves `i` after them; throws if there are too many.
int64_t parse_count(std::string_view text, size_t& i);

// Each appends one value, padded to the field's width, within the memory limit.
void append_integer(Runtime& runtime, std::string& out, const Value& value, const Field& field);
void append_float(Runtime& runtime, std::string& out, double value, const Field& field);
void append_string(Runtime& runtime, std::string& out, std::string_view text, const Field& field);
// `prefix` bytes of `body` (its sign) stay in front of the padding of '='.
void append_padded(Runtime& runtime, std::string& out, std::string_view body, const Field& field,
                   char default_align, size_t prefix);

}  // namespace rbee::text::jinja
