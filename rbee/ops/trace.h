#pragma once
// Optional record of which implementation each operation took (tests, benchmarks).

#include <atomic>
#include <functional>

#include "backends/api/view.h"

namespace rbee {

// While a function is set, every operation calls it before it runs; an empty function turns tracing
// off. Not thread-safe against running operations.
struct TracedOp {
  const char* op;
  const char* implementation;
  const View* x = nullptr;      // the first operand, where the operation has one
  const View* other = nullptr;  // the weight or the second operand; of parts the first one's
  int64_t weight_rows = 0;      // of all parts of a linear layer together
};
void set_op_trace(std::function<void(const TracedOp&)> sink);

namespace detail {

extern std::atomic<bool> op_trace_enabled;
void trace_op_slow(const TracedOp& op);

template <typename Args>
const View* first_operand(const Args& args) {
  if constexpr (requires { args.x.rank; }) {
    return &args.x;
  } else if constexpr (requires { args.q.rank; }) {
    return &args.q;
  } else if constexpr (requires { args.a.rank; }) {
    return &args.a;
  } else if constexpr (requires { args.y.rank; }) {
    return &args.y;
  } else {
    return nullptr;
  }
}

template <typename Args>
const View* second_operand(const Args& args) {
  if constexpr (requires { args.parts.front().weight.rank; }) {
    return &args.parts.front().weight;
  } else if constexpr (requires { args.weight.rank; }) {
    return &args.weight;
  } else if constexpr (requires { args.k.rank; }) {
    return &args.k;
  } else if constexpr (requires { args.b.rank; }) {
    return &args.b;
  } else {
    return nullptr;
  }
}

template <typename Args>
int64_t weight_rows(const Args& args) {
  int64_t rows = 0;
  if constexpr (requires { args.parts.front().weight.rank; }) {
    for (const auto& part : args.parts) rows += part.weight.size(0);
  }
  return rows;
}

}  // namespace detail

template <typename Args>
void trace_op(const char* op, const char* implementation, const Args& args) {
  if (!detail::op_trace_enabled.load(std::memory_order_relaxed)) return;
  detail::trace_op_slow({.op = op,
                         .implementation = implementation,
                         .x = detail::first_operand(args),
                         .other = detail::second_operand(args),
                         .weight_rows = detail::weight_rows(args)});
}

}  // namespace rbee
