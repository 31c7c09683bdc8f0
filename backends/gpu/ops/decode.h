#pragma once

#include "backends/api/kernel_table.h"

namespace rbee::gpu {

extern const Impl<DrawArgs> draw;
extern const Impl<NextStepArgs> next_step;

}  // namespace rbee::gpu
