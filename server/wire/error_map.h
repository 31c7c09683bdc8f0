#pragma once
// The only place that turns a Code into what a client sees.

#include <string_view>

#include "rbee/core/error.h"

namespace rbee::server {

struct WireError {
  int status;             // of an HTTP response
  std::string_view code;  // in bodies and events
  bool retriable;         // the same request may succeed later, here or elsewhere
};

WireError wire_error(Code code);
// For a request whose worker stops before its answer is whole.
WireError stopping_error();

}  // namespace rbee::server
