#pragma once

#include <span>

#include "rbee/tensor/tensor.h"

namespace rbee {

// The parts one after another along `axis`, of one dtype and of equal sizes along all other axes;
// any strides. Throws invalid_argument if there is no part; if a part does not fit, the error names
// the first.
Tensor concat(std::span<const Tensor> parts, Axis axis);
Tensor concat(std::initializer_list<Tensor> parts, Axis axis);

}  // namespace rbee
