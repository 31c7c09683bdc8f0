// Views of more elements than 32 bits can count, at addresses without memory: the launches for them
// must cover every element once and stay within the devices' limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/gpu/launch.h"
#include "backends/gpu/loop.h"
#include "backends/gpu/ops/conv.h"
#include "backends/gpu/rows.h"
#include "backends/gpu/run_first.h"
#include "backends/shared/conv_params.h"
#include "backends/shared/reduce_params.h"
#include "backends/shared/rope_params.h"
#include "tests/gpu/fake_view.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using gpu::GpuDevice;
using ::testing::HasSubstr;

constexpr int64_t kGiga = int64_t{1} << 30;

// Each part of a loop must begin where the one before ended.
void expect_whole(const View& view, size_t parts) {
  const gpu::Loop<1> loop = gpu::loop_over<1>({&view});
  const std::byte* begin = loop.operands[0].data;
  int64_t next = 0;
  size_t seen = 0;
  gpu::for_parts(loop, [&](const gpu::Loop<1>& part, int64_t first) {
    EXPECT_EQ(first, next);
    EXPECT_EQ(part.operands[0].data - begin, first * info(view.dtype).block_bytes);
    EXPECT_LE(part.count(), kGiga);
    const shared::Strided<1> space = gpu::strided(part, true);
    EXPECT_EQ(int64_t{space.count}, part.count());
    next += part.count();
    ++seen;
  });
  EXPECT_EQ(next, view.numel());
  EXPECT_EQ(seen, parts);
}

TEST(HugeLoop, PartsCoverEveryElementOnce) {
  expect_whole(fake_view({kGiga}), 1);
  expect_whole(fake_view({kGiga + 1}), 2);
  expect_whole(fake_view({2 * kGiga}), 2);
  expect_whole(fake_view({5 * kGiga + 3}), 6);
  expect_whole(fake_view({3, kGiga / 2 + 1, 7}, DType::f64), 11);
}

// Axes with gaps do not merge: the outermost is cut first, then those inside it.
TEST(HugeLoop, PartsOfGapsCoverEveryElementOnce) {
  View view = fake_view({3, 5, kGiga});
  view.strides[1] = 2 * kGiga;
  view.strides[0] = 20 * kGiga;
  const gpu::Loop<1> loop = gpu::loop_over<1>({&view});
  std::vector<int64_t> places;
  gpu::for_parts(loop, [&](const gpu::Loop<1>& part, int64_t first) {
    EXPECT_EQ(part.count(), kGiga);
    EXPECT_EQ(first, std::ssize(places) * kGiga);
    places.push_back((part.operands[0].data - loop.operands[0].data) / 2 / kGiga);
  });
  EXPECT_THAT(places,
              ::testing::ElementsAre(0, 2, 4, 6, 8, 20, 22, 24, 26, 28, 40, 42, 44, 46, 48));
}

struct RowArgs {
  View x, y;
};

// For both views, whichever axes hold the rows.
TEST(HugeRows, PartsCoverEveryRowOnce) {
  const auto expect_parts = [](std::initializer_list<int64_t> sizes, std::vector<int64_t> rows) {
    const RowArgs whole{.x = fake_view(sizes), .y = fake_view(sizes, DType::u32)};
    int64_t next = 0;
    std::vector<int64_t> seen;
    gpu::for_row_parts(whole, {&RowArgs::x, &RowArgs::y}, 4, [&](const RowArgs& part) {
      EXPECT_EQ(part.x.as<std::byte>() - whole.x.as<std::byte>(), next * 10 * 2);
      EXPECT_EQ(part.y.as<std::byte>() - whole.y.as<std::byte>(), next * 10 * 4);
      EXPECT_EQ(gpu::row_count(part.x), gpu::row_count(part.y));
      seen.push_back(gpu::row_count(part.x));
      next += seen.back();
    });
    EXPECT_EQ(seen, rows);
  };
  expect_parts({4, 10}, {4});
  expect_parts({10}, {1});
  expect_parts({0, 10}, {0});
  expect_parts({11, 10}, {2, 3, 3, 3});
  expect_parts({1, 3, 5, 10}, {2, 3, 2, 3, 2, 3});
}

// The launches that a fake device received.
struct Seen {
  int64_t threads;
  std::vector<std::byte> params;
};
std::vector<Seen> seen;

int see(const void*, const char*, fake::Dim3 grid, uint32_t threads, uint32_t, const void* params,
        uint32_t bytes) {
  const auto* first = static_cast<const std::byte*>(params);
  seen.push_back({int64_t{grid.x} * threads, {first, first + bytes}});
  return 0;
}

class HugeViewsTest : public RuntimeTest {
 protected:
  HugeViewsTest() : library_(GetParam()), driver_(library_.open()), device_(vendor(*driver_), 0) {
    seen.clear();
    library_.set_launch_hook(see);
  }
  ~HugeViewsTest() override { library_.set_launch_hook(nullptr); }

  const KernelTable& kernels() const { return device_.kernels(); }
  Stream& stream() { return device_.default_stream(); }
  // Every result has exactly one thread.
  template <typename Params>
  void expect_each_once(int64_t results) {
    int64_t next = 0;
    for (const Seen& launch : seen) {
      Params params;
      ASSERT_EQ(launch.params.size(), sizeof params);
      std::memcpy(static_cast<void*>(&params), launch.params.data(), sizeof params);
      EXPECT_EQ(params.first, next);
      EXPECT_EQ(params.count, results);
      next += launch.threads;
    }
    EXPECT_GE(next, results);
    EXPECT_LT(next - seen.back().threads, results);
    EXPECT_EQ(library_.violation(), "");
    seen.clear();
  }

  // The same for rows of `each` threads, over several launches.
  template <typename Params>
  void expect_rows_once(int64_t rows, int64_t each) {
    int64_t next = 0;
    EXPECT_GT(seen.size(), 1U);
    for (const Seen& launch : seen) {
      Params params;
      ASSERT_EQ(launch.params.size(), sizeof params);
      std::memcpy(static_cast<void*>(&params), launch.params.data(), sizeof params);
      EXPECT_EQ(params.first, next);
      EXPECT_EQ(params.rows, rows);
      EXPECT_EQ(launch.threads % each, 0);
      next += launch.threads / each;
    }
    EXPECT_EQ(next, rows);
    EXPECT_EQ(library_.violation(), "");
    seen.clear();
  }

  FakeLibrary library_;
  std::unique_ptr<gpu::Driver> driver_;
  GpuDevice device_;
};

INSTANTIATE_TEST_SUITE_P(Vendors, HugeViewsTest, each_vendor(), name_of_vendor);

TEST_P(HugeViewsTest, PlanesOfMoreResultsThanALaunchHasThreads) {
  constexpr int64_t kSide = 1 << 15;
  const View x = fake_view({1, 5, kSide, kSide}),
             wide = fake_view({1, 5, kSide, kSide}, DType::f64);
  const Conv2dArgs conv{
      .x = wide, .weight = fake_view({5, 5, 1, 1}, DType::f64), .bias = {}, .y = wide};
  gpu::run_first(kernels().conv2d, conv, stream());
  expect_each_once<shared::ConvParams>(5 * kGiga);
  gpu::run_first(
      kernels().pool2d,
      Pool2dArgs{.x = x, .y = x, .kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1},
      stream());
  expect_each_once<shared::PoolParams>(5 * kGiga);
  gpu::run_first(kernels().upsample, UpsampleArgs{.x = fake_view({1, 5, 1, 1}), .y = x}, stream());
  expect_each_once<shared::UpsampleParams>(5 * kGiga);
}

TEST_P(HugeViewsTest, HeadsOfMoreThreadsThanALaunchHas) {
  const View x = fake_view({1, 1 << 10, 1 << 19, 128});
  const View table = fake_view({1 << 19, 64}, DType::f32);
  gpu::run_first(kernels().rope,
                 RopeArgs{.x = x, .cos = table, .sin = table, .positions = {}, .y = x}, stream());
  expect_rows_once<shared::RopeParams>(int64_t{1} << 29, 8);
  const View keys = fake_view({1 << 24, 8, 128}), slots = fake_view({1 << 24}, DType::i32);
  for (const DType cache : {DType::f16, DType::q8_0}) {
    const View pages = fake_view({1 << 19, 8, 32, 128}, cache);
    const int64_t each = cache == DType::q8_0 ? 32 : 16;  // threads
    gpu::run_first(kernels().kv_append, KvAppendArgs{keys, keys, slots, pages, pages}, stream());
    expect_rows_once<shared::AppendParams>(int64_t{1} << 28, each);
    const RopeAppendArgs both{.q = keys,
                              .k = keys,
                              .v = keys,
                              .cos = table,
                              .sin = table,
                              .positions = slots,
                              .slots = slots,
                              .q_out = fake_view({1 << 24, 8, 128}),
                              .k_cache = pages,
                              .v_cache = pages};
    gpu::run_first(kernels().rope_append, both, stream());
    expect_rows_once<shared::AppendParams>(int64_t{3} << 27, cache == DType::q8_0 ? 32 : 8);
  }
}

TEST_P(HugeViewsTest, ElementwiseOperations) {
  const View x = fake_view({3, 2 * kGiga}), bytes = fake_view({3, 2 * kGiga}, DType::u8);
  const View wide = fake_view({3, 2 * kGiga}, DType::f64);
  View across = fake_view({kGiga, 6});
  std::swap(across.strides[0], across.strides[1]);
  const View rows = fake_view({kGiga, 6});
  gpu::run_first(kernels().unary, UnaryArgs{.op = UnaryOp::exp, .x = x, .y = x}, stream());
  gpu::run_first(kernels().binary, BinaryArgs{BinaryOp::add, x, x, x}, stream());
  gpu::run_first(kernels().compare, CompareArgs{CompareOp::lt, x, x, bytes}, stream());
  gpu::run_first(kernels().where, WhereArgs{bytes, x, x, x}, stream());
  gpu::run_first(kernels().cast, CastArgs{.x = x, .y = wide}, stream());
  gpu::run_first(kernels().copy, CopyArgs{.x = across, .y = rows}, stream());
  gpu::run_first(kernels().softmax, SoftmaxArgs{.x = x, .y = x}, stream());
  EXPECT_GE(seen.size(), 6 * 6);
  EXPECT_EQ(library_.violation(), "");
}

// More rows than AMD can count threads for, and than an NVIDIA launch has blocks.
TEST_P(HugeViewsTest, RowsOfMoreBlocksThanALaunchHas) {
  constexpr int64_t kRows = 1 << 24;
  const View x = fake_view({2, kRows / 2, 16}), ids = fake_view({2, kRows / 2, 16}, DType::u32);
  const View weight = fake_view({16}), flat = fake_view({kRows, 16});
  gpu::run_first(kernels().rms_norm, RmsNormArgs{x, weight, x, 1e-5f}, stream());
  gpu::run_first(kernels().add_rms_norm, AddRmsNormArgs{flat, flat, weight, flat, flat, 1e-5f},
                 stream());
  gpu::run_first(kernels().layer_norm,
                 LayerNormArgs{.x = fake_view({kRows, 1029}), .y = fake_view({kRows, 1029})},
                 stream());
  gpu::run_first(kernels().softmax, SoftmaxArgs{fake_view({kRows, 3000}), fake_view({kRows, 3000})},
                 stream());
  gpu::run_first(kernels().argsort,
                 ArgsortArgs{fake_view({kRows, 1500}), fake_view({kRows, 1500}, DType::u32)},
                 stream());
  gpu::run_first(kernels().argsort, ArgsortArgs{x, ids}, stream());
  EXPECT_EQ(seen.size(), 2U * 6);
  EXPECT_EQ(library_.violation(), "");
}

TEST_P(HugeViewsTest, SmallMatricesAndSums) {
  constexpr int64_t kMany = int64_t{1} << 24;
  gpu::run_first(
      kernels().matmul,
      MatmulArgs{fake_view({kMany, 1, 8}, DType::f32), fake_view({kMany, 8, 1}, DType::f32),
                 fake_view({kMany, 1, 1}, DType::f32)},
      stream());
  gpu::run_first(kernels().reduce,
                 ReduceArgs{.op = ReduceOp::max,
                            .axes = 2,
                            .x = fake_view({kMany, 4096}),
                            .y = fake_view({kMany, 1})},
                 stream());
  gpu::run_first(kernels().top_k,
                 TopKArgs{.x = fake_view({kMany, 64}),
                          .values = fake_view({kMany, 8}, DType::f32),
                          .ids = fake_view({kMany, 8}, DType::i32)},
                 stream());
  gpu::run_first(kernels().embedding,
                 EmbeddingArgs{.ids = fake_view({4 * kMany}, DType::i32),
                               .table = fake_view({9, 1025}),
                               .y = fake_view({4 * kMany, 1025})},
                 stream());
  EXPECT_EQ(library_.violation(), "");
}

// Kernels use the last index of 32 bits for "none".
TEST_P(HugeViewsTest, LargestOfMoreElementsThan32BitsCount) {
  const View y = fake_view({1}, DType::u8);
  gpu::run_first(
      kernels().reduce,
      ReduceArgs{.op = ReduceOp::max, .axes = 1, .x = fake_view({5 * kGiga}, DType::u8), .y = y},
      stream());
  ASSERT_EQ(seen.size(), 5U + 1);
  for (size_t i = 0; i < 5; ++i) {
    shared::ReduceParams params;
    ASSERT_EQ(seen[i].params.size(), sizeof params);
    std::memcpy(static_cast<void*>(&params), seen[i].params.data(), sizeof params);
    EXPECT_LT(params.first + params.reduced.count, uint64_t{0xffffffff});
  }
  EXPECT_EQ(library_.violation(), "");
}

TEST_P(HugeViewsTest, RowsAsLongAsTheirResultsNumber) {
  const auto refusal_of = [&](int64_t length) {
    const ArgsortArgs args{fake_view({length}, DType::u8), fake_view({length}, DType::u32)};
    return rbee::refusal(kernels().argsort[0], args, stream());
  };
  EXPECT_EQ(refusal_of(4 * kGiga - 1), nullptr);
  EXPECT_NE(refusal_of(4 * kGiga), nullptr);
}

// The host refuses what it cannot cut; the device is not at fault.
TEST(HugeLaunch, AmdCountsThreadsIn32Bits) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  const FakeLibrary library(Vendor::rocm);
  const auto driver = library.open();
  GpuDevice device(with_driver(Vendor::rocm, *driver), 0);
  const auto [code, message] = error_of([&] {
    gpu::launch(device.default_stream(),
                {.op = "rope",
                 .family = "rope",
                 .kernel = gpu::KernelName("rope", DType::f16),
                 .grid = {.x = 1 << 24},
                 .threads = 256},
                shared::RopeParams{});
  });
  EXPECT_EQ(code, Code::unsupported);
  EXPECT_THAT(message, HasSubstr("rope: "));
  EXPECT_THAT(message, HasSubstr("4294967296 threads are 2^32 and more"));
  EXPECT_EQ(library.launches(), 0);
}

}  // namespace
}  // namespace rbee::harness
