#pragma once
// Compiled kernels as they are embedded in a program: one image for each family (CUDA: with code
// for several architectures) or for each family and architecture (ROCm).

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::gpu {

struct KernelImage {
  const char* family;                // stem of the source under backends/gpu/kernels, e.g. "unary"
  const char* architecture;          // "gfx942"; empty: the driver picks within the image
  std::span<const std::byte> bytes;  // as embedded: open_image() gives them to a driver
  // The frame holds what differs from this one, opened; null: it stands alone.
  const KernelImage* base = nullptr;
};

// The image as a driver takes it. AMD's are embedded as frames of zstd; NVIDIA's compiler
// compresses its own. Throws internal for a frame that is damaged.
std::vector<std::byte> open_image(const KernelImage& image);

// The image of a family for a device of `architecture`; null if there is none.
const KernelImage* find_image(std::span<const KernelImage> images, std::string_view family,
                              std::string_view architecture);
// Whether there is an image for a device of `architecture`.
bool has_image(std::span<const KernelImage> images, std::string_view architecture);
// The smallest image for a device of `architecture`; null if there is none.
const KernelImage* smallest_image(std::span<const KernelImage> images,
                                  std::string_view architecture);
// The architectures that a family is embedded for, separated by ", ".
std::string embedded_architectures(std::span<const KernelImage> images, std::string_view family);

}  // namespace rbee::gpu
