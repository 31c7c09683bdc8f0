#include "rbee/core/error.h"

namespace rbee {
namespace {

std::string without_nul(std::string text) {
  for (size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at)) {
    text.replace(at, 1, "\\x00");
  }
  return text;
}

}  // namespace

Error::Error(Code code, std::string_view op, std::string_view message)
    : std::runtime_error(without_nul(cat(op, ": ", message))), code_(code), op_(op) {}

std::string_view name(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::unsupported:
      return "unsupported";
    case Code::not_found:
      return "not_found";
    case Code::out_of_memory:
      return "out_of_memory";
    case Code::device:
      return "device";
    case Code::io:
      return "io";
    case Code::cancelled:
      return "cancelled";
    case Code::internal:
      return "internal";
  }
  return "unknown";
}

void assertion_failed(const char* condition, const char* file, int line) {
  fail(Code::internal, "assertion", condition, " at ", file, ":", line);
}

}  // namespace rbee
