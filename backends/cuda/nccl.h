#pragma once

#include "backends/gpu/ccl_library.h"

namespace rbee::cuda {

// NCCL, opened at the first request; RBEE_NCCL_LIBRARY may name its file.
extern const gpu::CclVendor kNcclVendor;
gpu::CclLibrary& nccl_library();

}  // namespace rbee::cuda
