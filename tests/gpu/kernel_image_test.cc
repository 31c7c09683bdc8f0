// Unpacks embedded kernels from their frames.
#include "backends/gpu/kernel_image.h"

#include <gmock/gmock.h>
#include <zstd.h>

#include <cstring>
#include <memory>

#include "rbee/core/error.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::gpu {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> frame_of(const std::vector<std::byte>& bytes) {
  std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

TEST(KernelImage, AFrameIsOpenedAndOtherBytesStayAsTheyAre) {
  std::vector<std::byte> code(100'000);
  for (size_t i = 0; i < code.size(); ++i) code[i] = static_cast<std::byte>(i / 7 % 256);
  const std::vector<std::byte> frame = frame_of(code);
  EXPECT_LT(frame.size(), code.size() / 4);
  EXPECT_EQ(open_image({"cast", "gfx942", frame}), code);
  EXPECT_EQ(open_image({"cast", "", code}), code);
}

TEST(KernelImage, AFrameIsOpenedWithItsBase) {
  std::vector<std::byte> code(100'000);
  uint32_t state = 1;  // noise, which is as large in a frame
  for (std::byte& each : code) {
    state = state * 1664525 + 1013904223;
    each = static_cast<std::byte>(state >> 24);
  }
  const std::vector<std::byte> frame = frame_of(code);
  std::vector<std::byte> other = code;
  other[70'000] = ~other[70'000];
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     &ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, 18);
  ZSTD_CCtx_refPrefix(context.get(), code.data(), code.size());
  std::vector<std::byte> change(ZSTD_compressBound(other.size()));
  change.resize(
      ZSTD_compress2(context.get(), change.data(), change.size(), other.data(), other.size()));
  EXPECT_LT(change.size(), 1000U);
  const KernelImage base{"cast", "gfx1100", frame};
  EXPECT_EQ(open_image({"cast", "gfx1101", change, &base}), other);
  const auto [failure, message] =
      harness::error_of([&] { open_image({"cast", "gfx1101", change}); });
  EXPECT_THAT(message, HasSubstr("the embedded kernels for gfx1101 are damaged"));
}

TEST(KernelImage, ADamagedFrameNamesItsKernels) {
  std::vector<std::byte> frame = frame_of(std::vector<std::byte>(5000, std::byte{7}));
  frame.pop_back();
  const auto [code, message] = harness::error_of([&] { open_image({"cast", "gfx942", frame}); });
  EXPECT_EQ(code, Code::internal);
  EXPECT_THAT(message, HasSubstr("cast: the embedded kernels for gfx942 are damaged"));
}

TEST(KernelImage, AmdsAreEmbeddedInFrames) {
  if (!harness::is_built(harness::Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  size_t stored = 0, opened = 0;
  for (const KernelImage& image : harness::images_of(harness::Vendor::rocm)) {
    const std::vector<std::byte> code = open_image(image);
    ASSERT_GT(code.size(), 4U);
    EXPECT_EQ(std::memcmp(code.data(),
                          "\x7f"
                          "ELF",
                          4),
              0)
        << image.family;
    stored += image.bytes.size();
    opened += code.size();
  }
  EXPECT_LT(stored, opened / 4);
}

}  // namespace
}  // namespace rbee::gpu
