#pragma once
// Random numbers that depend on the seed and the element's index only, not on threads or devices:
// Philox4x32-10 (Salmon et al. 2011) with key = seed and counter = offset + index gives the words
// r0..r3 of an element. backends/api/args_random.h says how words become numbers.

#include "rbee/tensor/tensor.h"

namespace rbee {

struct UniformOptions {
  uint64_t seed = 0;
  uint64_t offset = 0;  // counter of the first element; a stream goes on at offset + numel
  double low = 0, high = 1;
};

// Evenly distributed over [low, high). dtype: a float type
Tensor random_uniform(const Shape& shape, DType dtype, Device& device,
                      const UniformOptions& options = {});

struct NormalOptions {
  uint64_t seed = 0;
  uint64_t offset = 0;
  double mean = 0, stddev = 1;
};

// Normally distributed (Box and Muller 1958). dtype: a float type
Tensor random_normal(const Shape& shape, DType dtype, Device& device,
                     const NormalOptions& options = {});

}  // namespace rbee
