#pragma once
// The kernel table of Apple's GPUs, and the embedded text.

#include <span>

#include "backends/api/kernel_table.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_image.h"

namespace rbee::metal {

// The text of each family; made by the build (cmake/rbee_kernels.cmake).
std::span<const gpu::KernelImage> metal_images();

const KernelTable& metal_kernels(const gpu::Properties& device);

}  // namespace rbee::metal
