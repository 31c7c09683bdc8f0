#pragma once

#include "backends/api/view.h"

namespace rbee {

enum class RandomKind : uint8_t {
  uniform,  // [a, b)
  normal,   // mean a, standard deviation b
};

// Philox4x32-10 (Salmon et al. 2011): element i uses counter offset + i, so results do not depend
// on threads or devices.
struct RandomArgs {
  RandomKind kind;
  View y;  // any float dtype, contiguous
  uint64_t seed = 0, offset = 0;
  double a = 0, b = 1;
};

}  // namespace rbee
