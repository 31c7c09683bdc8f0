#include "rbee/ops/trace.h"

namespace rbee {
namespace {

using Sink = std::function<void(const TracedOp&)>;

Sink& sink() {
  static Sink instance;
  return instance;
}

}  // namespace

namespace detail {

std::atomic<bool> op_trace_enabled{false};

void trace_op_slow(const TracedOp& op) {
  sink()(op);
}

}  // namespace detail

void set_op_trace(Sink new_sink) {
  detail::op_trace_enabled.store(false);
  sink() = std::move(new_sink);
  detail::op_trace_enabled.store(static_cast<bool>(sink()));
}

}  // namespace rbee
