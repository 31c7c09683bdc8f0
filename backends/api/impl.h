#pragma once
// One implementation of an operation, and the ordered list a slot holds.

#include <span>

#include "backends/api/device.h"

namespace rbee {

template <typename Args>
struct Impl {
  const char* name;  // shown in traces and errors, e.g. "avx2"
  // Null when this implementation takes the arguments, else the reason why another should.
  const char* (*refuse)(const Args&);
  void (*run)(const Args&, Stream&);
};

template <typename Args>
using Slot = std::span<const Impl<Args>>;

// For implementations that take everything.
template <typename Args>
const char* never_refuse(const Args&) {
  return nullptr;
}

}  // namespace rbee
