#pragma once

#include "backends/gpu/ccl_library.h"

namespace rbee::rocm {

// RCCL, opened at the first request; RBEE_RCCL_LIBRARY may name its file.
extern const gpu::CclVendor kRcclVendor;
gpu::CclLibrary& rccl_library();

}  // namespace rbee::rocm
