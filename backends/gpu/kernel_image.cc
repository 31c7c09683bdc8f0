#include "backends/gpu/kernel_image.h"

#include <zstd.h>

#include <algorithm>
#include <memory>

#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

bool fits(const KernelImage& image, std::string_view architecture) {
  const std::string_view made_for = image.architecture;
  return made_for.empty() || made_for == architecture;
}

}  // namespace

std::vector<std::byte> open_image(const KernelImage& image) {
  const std::span<const std::byte> stored = image.bytes;
  const unsigned long long size = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (size == ZSTD_CONTENTSIZE_ERROR) return {stored.begin(), stored.end()};  // no frame
  const auto damaged = [&](std::string_view why) {
    fail(Code::internal, image.family, "the embedded kernels for ", image.architecture,
         " are damaged: ", why);
  };
  if (size == ZSTD_CONTENTSIZE_UNKNOWN) damaged("the frame has no size");
  const std::vector<std::byte> base =
      image.base == nullptr ? std::vector<std::byte>() : open_image(*image.base);
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (!context) fail(Code::out_of_memory, image.family, "no memory to open its kernels");
  std::vector<std::byte> out(size);
  size_t read = ZSTD_DCtx_refPrefix(context.get(), base.data(), base.size());
  if (ZSTD_isError(read) == 0) {
    read = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), stored.data(), stored.size());
  }
  if (ZSTD_isError(read) != 0) damaged(ZSTD_getErrorName(read));
  return out;
}

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
