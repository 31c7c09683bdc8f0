#pragma once
// Picks the implementation of an operation: the first of the slot that does not refuse.

#include <string>

#include "backends/api/impl.h"
#include "rbee/core/error.h"
#include "rbee/ops/trace.h"

namespace rbee {

// False if all refuse.
template <typename Args>
bool try_run(const char* op, Slot<Args> slot, const Args& args, Stream& stream) {
  for (const Impl<Args>& impl : slot) {
    if (refusal(impl, args, stream) != nullptr) continue;
    trace_op(op, impl.name, args);
    impl.run(args, stream);
    return true;
  }
  return false;
}

// Throws unsupported with each implementation's reason if all refuse.
template <typename Args>
void run(const char* op, Slot<Args> slot, const Args& args, Stream& stream) {
  if (try_run(op, slot, args, stream)) return;
  std::string refusals;
  for (const Impl<Args>& impl : slot) {
    refusals += cat("\n  ", impl.name, ": ", refusal(impl, args, stream));
  }
  fail(Code::unsupported, op, "no kernel takes these arguments on ", stream.device->id(), refusals);
}

}  // namespace rbee
