#pragma once
// Picks the implementation of an operation: the first of the slot that does not refuse.

#include <string>

#include "backends/api/impl.h"
#include "rbee/core/error.h"
#include "rbee/ops/trace.h"

namespace rbee {

template <typename Args>
void run(const char* op, Slot<Args> slot, const Args& args, Stream& stream) {
  for (const Impl<Args>& impl : slot) {
    if (impl.refuse(args) != nullptr) continue;
    trace_op(op, impl.name, args);
    return impl.run(args, stream);
  }
  std::string refusals;
  for (const Impl<Args>& impl : slot) {
    refusals += cat("\n  ", impl.name, ": ", impl.refuse(args));
  }
  fail(Code::unsupported, op, "no kernel takes these arguments on ", stream.device->id(), refusals);
}

}  // namespace rbee
