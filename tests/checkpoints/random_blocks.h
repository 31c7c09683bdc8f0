#pragma once
// Blocks of types that the program reads but cannot write.

#include <cstddef>
#include <span>
#include <vector>

#include "rbee/core/dtype.h"

namespace rbee::test {

// Random codes, one for each value; each block keeps the mean square of its
// values.
std::vector<std::byte> random_blocks(DType dtype, std::span<const float> values);

}  // namespace rbee::test
