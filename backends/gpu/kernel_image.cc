#include "backends/gpu/kernel_image.h"

#include <algorithm>

namespace rbee::gpu {
namespace {

bool fits(const KernelImage& image, std::string_view architecture) {
  const std::string_view made_for = image.architecture;
  return made_for.empty() || made_for == architecture;
}

}  // namespace

const KernelImage* find_image(std::span<const KernelImage> images, std::string_view family,
                              std::string_view architecture) {
  for (const KernelImage& image : images) {
    if (image.family == family && fits(image, architecture)) return &image;
  }
  return nullptr;
}

bool has_image(std::span<const KernelImage> images, std::string_view architecture) {
  return std::ranges::any_of(images, [&](const auto& image) { return fits(image, architecture); });
}

const KernelImage* smallest_image(std::span<const KernelImage> images,
                                  std::string_view architecture) {
  const KernelImage* smallest = nullptr;
  for (const KernelImage& image : images) {
    if (!fits(image, architecture)) continue;
    if (smallest == nullptr || image.bytes.size() < smallest->bytes.size()) smallest = &image;
  }
  return smallest;
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
