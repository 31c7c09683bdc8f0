#pragma once

#include "backends/api/kernel_table.h"

namespace rbee::cpu {

extern const Impl<DrawArgs> ref_draw;
extern const Impl<NextStepArgs> ref_next_step;

}  // namespace rbee::cpu
