#pragma once
// The known values of JSON schema's `format`, as regular expressions. Internal.

#include <string>
#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

struct Format {
  std::string pattern;              // of the whole text
  int64_t max_length = kUnlimited;  // in characters
};

// Null for unknown formats.
const Format* find_format(std::string_view name);

}  // namespace rbee::grammar
