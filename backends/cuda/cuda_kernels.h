#pragma once
// The kernel table of NVIDIA devices, and the embedded code.

#include <span>

#include "backends/api/kernel_table.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_image.h"

namespace rbee::cuda {

// One fat binary for each family; made by the build (cmake/rbee_kernels.cmake).
std::span<const gpu::KernelImage> cuda_images();

const KernelTable& cuda_kernels(const gpu::Properties& device);

}  // namespace rbee::cuda
