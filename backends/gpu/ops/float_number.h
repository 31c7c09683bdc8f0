#pragma once

#include <cstdint>

#include "rbee/core/dtype.h"

namespace rbee::gpu {

// Float types as kernels' parameters number them.
inline uint8_t float_number(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::bf16:
      return 2;
    case DType::f64:
      return 3;
    default:
      return 4;
  }
}

}  // namespace rbee::gpu
