#pragma once
// One implementation of an operation, and the ordered list a slot holds.

#include <span>

#include "backends/api/device.h"

namespace rbee {

template <typename Args>
struct Impl {
  const char* name;  // shown in traces and errors, e.g. "avx2"
  // Null if this implementation takes the arguments, else the reason why another should.
  const char* (*refuse)(const Args&);
  void (*run)(const Args&, Stream&);
  // As `refuse`, for reasons that depend on the stream's device, e.g. a library without a kernel
  // for it. Called after `refuse`; may be null.
  const char* (*refuse_on)(const Args&, Stream&) = nullptr;
};

// Null if the implementation takes the arguments on the stream's device, else its reason.
template <typename Args>
const char* refusal(const Impl<Args>& impl, const Args& args, Stream& stream) {
  const char* reason = impl.refuse(args);
  return reason != nullptr || impl.refuse_on == nullptr ? reason : impl.refuse_on(args, stream);
}

template <typename Args>
using Slot = std::span<const Impl<Args>>;

// For implementations that take everything.
template <typename Args>
const char* never_refuse(const Args&) {
  return nullptr;
}

}  // namespace rbee
