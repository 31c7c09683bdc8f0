#pragma once
// Views without memory, for tests of how the host handles sizes and strides.

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "backends/api/view.h"

namespace rbee::harness {

// Contiguous, at an address of 1 MiB that may not be read.
inline View fake_view(std::initializer_list<int64_t> sizes, DType dtype = DType::f16) {
  View view{.data = reinterpret_cast<void*>(uintptr_t{1} << 20),  // NOLINT
            .dtype = dtype,
            .rank = static_cast<int8_t>(sizes.size())};
  std::copy(sizes.begin(), sizes.end(), view.sizes);
  int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.strides[axis] = step;
    step *= view.sizes[axis];
  }
  return view;
}

}  // namespace rbee::harness
