// Unpacks embedded kernels from their frames.
#include "backends/gpu/kernel_image.h"

#include <gmock/gmock.h>
#include <zstd.h>

#include <cstring>

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
