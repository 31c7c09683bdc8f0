#pragma once

#include <span>

#include "rbee/tensor/tensor.h"

namespace rbee {

// The parts one after another along `axis`, of one dtype and of equal sizes along all other axes;
// any strides. Throws invalid_argument for no part, or naming the first that does not fit.
Tensor concat(std::span<const Tensor> parts, Axis axis);
Tensor concat(std::initializer_list<Tensor> parts, Axis axis);

}  // namespace rbee
