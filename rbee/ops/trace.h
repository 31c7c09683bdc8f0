#pragma once
// Optional record of which implementation each operation took (`--list-kernels`, tests).

#include <atomic>
#include <functional>

namespace rbee {

// Called for every operation while set; an empty function turns tracing off. Not thread-safe
// against running operations.
void set_op_trace(std::function<void(const char* op, const char* implementation)> sink);

namespace detail {
extern std::atomic<bool> op_trace_enabled;
void trace_op_slow(const char* op, const char* implementation);
}  // namespace detail

inline void trace_op(const char* op, const char* implementation) {
  if (detail::op_trace_enabled.load(std::memory_order_relaxed)) {
    detail::trace_op_slow(op, implementation);
  }
}

}  // namespace rbee
