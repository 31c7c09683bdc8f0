#pragma once
// The one exception type of the library. Thrown by file loading, op checks, allocation and launch
// status; never from a destructor or across a thread.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rbee/core/cat.h"

namespace rbee {

enum class Code : uint8_t {
  invalid_argument,  // the caller's values are wrong
  unsupported,       // valid, but not something this build or device can do
  not_found,
  out_of_memory,
  device,  // the device failed; it is not usable any more
  io,
  cancelled,
  internal,  // a bug in this project
};

// Lower-case name of the code, e.g. "invalid_argument".
std::string_view name(Code code);

class Error : public std::runtime_error {
 public:
  // `op` names the operation or the file part that failed; `message` holds the values. A NUL in
  // them, at which what() would end, is written as \x00.
  Error(Code code, std::string_view op, std::string_view message);

  Code code() const { return code_; }
  const std::string& op() const { return op_; }
  // what() without the operation before it. Lives as long as the error.
  std::string_view message() const {
    const std::string_view all = what();
    const bool begins = all.starts_with(op_) && all.substr(op_.size()).starts_with(": ");
    return begins ? all.substr(op_.size() + 2) : all;
  }

 private:
  Code code_;
  std::string op_;
};

// Throws Error(invalid_argument, op, cat(parts...)) unless `condition` holds.
template <typename... Parts>
inline void check(bool condition, std::string_view op, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    throw Error(Code::invalid_argument, op, cat(parts...));
  }
}

// Throws Error(code, op, cat(parts...)).
template <typename... Parts>
[[noreturn]] void fail(Code code, std::string_view op, const Parts&... parts) {
  throw Error(code, op, cat(parts...));
}

// Reports a broken invariant of this project and throws Code::internal; used by RB_ASSERT.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace rbee

// Checks a programmer's promise in debug and sanitizer builds.
#ifdef NDEBUG
#define RB_ASSERT(condition) ((void)0)
#else
#define RB_ASSERT(condition) \
  ((condition) ? (void)0 : ::rbee::assertion_failed(#condition, __FILE__, __LINE__))
#endif
