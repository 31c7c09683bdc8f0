#pragma once
// Operands on the CPU, their values in double, and what kernels round them to.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "rbee/core/half.h"
#include "rbee/tensor/tensor.h"
#include "tests/support/random_values.h"

namespace rbee::harness {

inline Device& cpu_device() {
  return cpu::cpu_backend().device(0);
}

inline Tensor random_tensor(const Shape& shape, DType dtype, uint64_t& state) {
  Tensor x = empty(shape, dtype, cpu_device());
  fill_random({static_cast<std::byte*>(x.view().data), static_cast<size_t>(x.bytes())}, dtype, {},
              state);
  return x;
}

inline std::vector<double> values_of(const Tensor& x) {
  std::vector<double> out(static_cast<size_t>(x.numel()));
  std::vector<int64_t> all(out.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  elements(static_cast<const std::byte*>(x.view().data), x.dtype(), all, out);
  return out;
}

// What 8-bit kernels make of x, a multiple of 32 elements: groups of 32, each rounded to multiples
// of its largest / 127.
inline void round_to_int8(std::vector<double>& x) {
  for (size_t group = 0; group < x.size(); group += 32) {
    float most = 0;
    for (size_t i = group; i < group + 32; ++i) {
      most = std::max(most, std::fabs(static_cast<float>(x[i])));
    }
    const float scale = most / 127.0f;
    for (size_t i = group; i < group + 32; ++i) {
      const float q = std::nearbyint(static_cast<float>(x[i]) * (127.0f / most));
      x[i] = most == 0 ? 0.0 : static_cast<double>(q) * static_cast<double>(scale);
    }
  }
}

inline void round_to_bf16(std::vector<double>& x) {
  for (double& value : x) value = to_float(to_bf16(static_cast<float>(value)));
}

}  // namespace rbee::harness
