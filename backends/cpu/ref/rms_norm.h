#pragma once

#include "backends/api/args_norm.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<RmsNormArgs> ref_rms_norm;
extern const Impl<AddRmsNormArgs> ref_add_rms_norm;

}  // namespace rbee::cpu
