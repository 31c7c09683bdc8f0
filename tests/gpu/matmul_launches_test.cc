// The activation products that matrix units compute, and the launches for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/gpu/run_first.h"
#include "backends/shared/product_params.h"
#include "tests/gpu/fake_view.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;
using ::testing::StrEq;

struct Seen {
  std::string kernel;
  uint32_t matrices;
  shared::GemmParams params;
};
std::vector<Seen> seen;

int see(const void*, const char* kernel, fake::Dim3 grid, uint32_t, uint32_t, const void* params,
        uint32_t bytes) {
  Seen launch{.kernel = kernel, .matrices = grid.y, .params = {}};
  if (bytes == sizeof launch.params) std::memcpy(&launch.params, params, bytes);
  seen.push_back(launch);
  return 0;
}

View turned(View view) {
  std::swap(view.sizes[2], view.sizes[3]);
  std::swap(view.strides[2], view.strides[3]);
  return view;
}

class MatmulLaunchesTest : public RuntimeTest {
 protected:
  MatmulLaunchesTest()
      : library_(GetParam()), driver_(library_.open()), device_(vendor(*driver_), 0) {
    seen.clear();
    library_.set_launch_hook(see);
  }
  ~MatmulLaunchesTest() override { library_.set_launch_hook(nullptr); }

  // Leaves out the vendor's library, which is first and which some machines have.
  Slot<MatmulArgs> own_kernels() const { return device_.kernels().matmul.subspan(1); }
  // The implementation that accepts it.
  std::string taker(const MatmulArgs& args) {
    for (const Impl<MatmulArgs>& impl : own_kernels()) {
      if (refusal(impl, args, device_.default_stream()) == nullptr) return impl.name;
    }
    return "none";
  }
  // The number of matrices in each launch.
  std::vector<uint32_t> launched(const MatmulArgs& args) {
    seen.clear();
    gpu::run_first(own_kernels(), args, device_.default_stream());
    EXPECT_EQ(library_.violation(), "");
    std::vector<uint32_t> matrices;
    for (const Seen& launch : seen) matrices.push_back(launch.matrices);
    return matrices;
  }

  FakeLibrary library_;
  std::unique_ptr<gpu::Driver> driver_;
  gpu::GpuDevice device_;
};

INSTANTIATE_TEST_SUITE_P(Vendors, MatmulLaunchesTest, each_vendor(), name_of_vendor);

TEST_P(MatmulLaunchesTest, MatrixUnitsTakeFloatsOf16BitsAndLess) {
  const auto units = AnyOf(StrEq("mfma"), StrEq("mma"), StrEq("wgmma"));
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3}) {
    const View x = fake_view({1, 2, 64, 64}, dtype);
    EXPECT_THAT(taker({.a = x, .b = x, .y = x}), units);
    EXPECT_THAT(taker({.a = turned(x), .b = turned(x), .y = turned(x)}), units);
  }
  const View x = fake_view({1, 2, 64, 64}, DType::f32);
  EXPECT_EQ(taker({.a = x, .b = x, .y = x}), "gpu");
}

// For few rows, transposing b costs too much; b is read in place if it is already transposed.
TEST_P(MatmulLaunchesTest, FewRowsTakeWhatIsReadAsItLies) {
  const View a = fake_view({1, 2, 3, 64}), b = fake_view({1, 2, 64, 64}),
             y = fake_view({1, 2, 3, 64});
  EXPECT_EQ(taker({.a = a, .b = b, .y = y}), "gpu");
  EXPECT_NE(taker({.a = a, .b = turned(b), .y = y}), "gpu");
  View odd = turned(b);
  odd.data = odd.as<std::byte>() + 2;
  EXPECT_EQ(taker({.a = a, .b = odd, .y = y}), "gpu");
}

TEST_P(MatmulLaunchesTest, ALaunchMultipliesAsManyMatricesAsItTakes) {
  const View a = fake_view({3, 70000, 16, 8}), b = turned(fake_view({3, 70000, 24, 8}));
  const View y = fake_view({3, 70000, 16, 24});
  EXPECT_THAT(launched({.a = a, .b = b, .y = y}),
              ::testing::ElementsAre(65535, 65535, 65535, 210000 - 3 * 65535));
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_THAT(seen[i].kernel, StartsWith("gemm_f16_"));
    const shared::GemmParams& params = seen[i].params;
    const auto first = static_cast<int64_t>(i) * 65535;
    EXPECT_EQ(params.y_matrix, 16 * 24 * 2);
    EXPECT_EQ(params.x_matrix, 16 * 8 * 2);
    EXPECT_EQ(params.weight_matrix, 24 * 8 * 2);
    EXPECT_EQ(params.y, y.as<std::byte>() + first * params.y_matrix);
    EXPECT_EQ(params.x, a.as<std::byte>() + first * params.x_matrix);
    EXPECT_EQ(params.weight, b.as<std::byte>() + first * params.weight_matrix);
  }
}

// A launch covers the longest axis; above 32 launches another way is used.
TEST_P(MatmulLaunchesTest, AxesThatDoNotJoinAreLaunchedInTurn) {
  View a = fake_view({3, 5, 16, 8});
  a.strides[0] = 0;
  const View b = turned(fake_view({3, 5, 24, 8})), y = fake_view({3, 5, 16, 24});
  EXPECT_THAT(launched({.a = a, .b = b, .y = y}), ::testing::ElementsAre(5, 5, 5));
  EXPECT_EQ(seen[2].params.x, a.data);
  EXPECT_EQ(seen[2].params.y, y.as<std::byte>() + 2 * 5 * seen[2].params.y_matrix);
  a = fake_view({40, 50, 16, 8});
  a.strides[0] = 0;
  EXPECT_EQ(
      taker({.a = a, .b = turned(fake_view({40, 50, 24, 8})), .y = fake_view({40, 50, 16, 24})}),
      "gpu");
}

// The fake device has two compute units, or two work-group processors of two each.
TEST(LargeTilesTest, AreTakenWhereEveryPlaceForABlockHasOne) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  for (const auto& [architecture, lanes, units] :
       {std::tuple{"gfx942", 64, 2}, std::tuple{"gfx1100", 32, 4}, std::tuple{"gfx1201", 32, 4}}) {
    if (gpu::find_image(images_of(Vendor::rocm), "gemm", architecture) == nullptr) continue;
    const FakeLibrary library(Vendor::rocm, {.architecture = architecture, .lanes = lanes});
    library.set_launch_hook(see);
    const auto driver = library.open();
    gpu::GpuDevice device(with_driver(Vendor::rocm, *driver), 0);
    EXPECT_EQ(device.properties().multiprocessors, units);
    for (const int64_t tiles : {1, 2}) {
      seen.clear();
      const View a = fake_view({1, 1, tiles * 128, 64}), b = turned(fake_view({1, 1, 128, 64}));
      const MatmulArgs args{.a = a, .b = b, .y = fake_view({1, 1, tiles * 128, 128})};
      gpu::run_first(device.kernels().matmul.subspan(1), args, device.default_stream());
      ASSERT_EQ(seen.size(), 1u);
      EXPECT_EQ(seen[0].kernel, tiles == 2 ? "gemm_f16_large" : "gemm_f16_small") << architecture;
    }
    library.set_launch_hook(nullptr);
  }
}

}  // namespace
}  // namespace rbee::harness
