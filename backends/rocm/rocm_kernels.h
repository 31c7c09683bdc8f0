#pragma once
// The kernel table of AMD devices, and the embedded code.

#include <span>

#include "backends/api/kernel_table.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_image.h"

namespace rbee::rocm {

// One code object for each family and architecture; made by the build (cmake/rbee_kernels.cmake).
std::span<const gpu::KernelImage> rocm_images();

const KernelTable& rocm_kernels(const gpu::Properties& device);

}  // namespace rbee::rocm
