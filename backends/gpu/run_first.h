#pragma once
// For operations that a GPU composes from others.

#include "backends/api/impl.h"

namespace rbee::gpu {

// Runs the first implementation of the slot that takes the arguments.
template <typename Args>
void run_first(Slot<Args> slot, const Args& args, Stream& stream) {
  for (const Impl<Args>& impl : slot) {
    if (refusal(impl, args, stream) == nullptr) return impl.run(args, stream);
  }
}

}  // namespace rbee::gpu
