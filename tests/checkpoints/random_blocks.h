#pragma once
// Blocks of types that can be read and not written.

#include <cstddef>
#include <span>
#include <vector>

#include "rbee/core/dtype.h"

namespace rbee::test {

// Random codes for as many elements as there are values, with the values' mean square in each
// block.
std::vector<std::byte> random_blocks(DType dtype, std::span<const float> values);

}  // namespace rbee::test
