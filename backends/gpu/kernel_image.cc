#include "backends/gpu/kernel_image.h"

namespace rbee::gpu {

const KernelImage* find_image(std::span<const KernelImage> images, std::string_view family,
                              std::string_view architecture) {
  for (const KernelImage& image : images) {
    if (image.family != family) continue;
    const std::string_view made_for = image.architecture;
    if (made_for.empty() || made_for == architecture) return &image;
  }
  return nullptr;
}

std::string embedded_architectures(std::span<const KernelImage> images, std::string_view family) {
  std::string list;
  for (const KernelImage& image : images) {
    if (image.family != family) continue;
    if (!list.empty()) list += ", ";
    list += image.architecture;
  }
  return list;
}

}  // namespace rbee::gpu
