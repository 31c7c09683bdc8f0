#pragma once

#include "backends/api/kernel_table.h"

namespace rbee::cpu {

extern const Impl<SoftmaxArgs> ref_softmax;

}  // namespace rbee::cpu
