#pragma once
// The template engine's internal exception. ChatTemplate turns it into rbee::Error and adds the
// line, which helpers such as filters do not know.

#include <cstdint>
#include <stdexcept>
#include <string>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"

namespace rbee::text::jinja {

struct Position {
  int32_t line = 0;  // from 1; 0: not known
  int32_t column = 0;
};

class Failure : public std::runtime_error {
 public:
  Failure(Code kind, Position where, const std::string& message)
      : std::runtime_error(message), code(kind), position(where) {}

  Code code;
  Position position;
  bool verbatim = false;  // raise_exception(): the template's own words, shown without a line
};

// An error while rendering.
template <typename... Parts>
[[noreturn]] void raise(const Parts&... parts) {
  throw Failure(Code::invalid_argument, {}, cat(parts...));
}

// An error in the template's source.
template <typename... Parts>
[[noreturn]] void raise_at(Position position, const Parts&... parts) {
  throw Failure(Code::invalid_argument, position, cat(parts...));
}

}  // namespace rbee::text::jinja
