#pragma once
// Matrices whose lines the copy engine fetches for linear layers, 128 bytes of each in a step.

#include <cstdint>

#include "backends/cuda/cuda_driver.h"

namespace rbee::cuda {

inline constexpr int64_t kTensorStepBytes = 128;

// A matrix (lines, depth) of elements of `bytes`, whose lines are `pitch` bytes apart: a multiple
// of 16, as `data` is.
struct TensorLines {
  DType dtype;
  const void* data;
  int64_t lines, depth, bytes, pitch;

  // Elements.
  uint32_t step() const { return static_cast<uint32_t>(kTensorStepBytes / bytes); }
  // A step of `count` lines in a box; past the last line or element it gives 0.
  TensorMapTiles map(int64_t count) const {
    const auto apart = static_cast<uint64_t>(pitch);
    return {.dtype = dtype,
            .data = data,
            .sizes = {static_cast<uint64_t>(depth), static_cast<uint64_t>(lines), 1, 1},
            .strides = {apart, apart, apart},
            .box = {step(), static_cast<uint32_t>(count), 1, 1}};
  }
};

}  // namespace rbee::cuda
