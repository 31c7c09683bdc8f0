#pragma once
// Where formulas spend their time.

#include "tests/support/scene.h"

namespace rbee::harness {

// Sum of a[a_first + k] * b[b_first + k], k < count. Throws invalid_argument outside of either.
double dot(const HostArray& a, int64_t a_first, const HostArray& b, int64_t b_first, int64_t count);

}  // namespace rbee::harness
