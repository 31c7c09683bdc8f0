// What launches of one-row products on Hopper declare about the kernels before and after them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/run_first.h"
#include "backends/shared/packed_weight.h"
#include "backends/shared/tensor_one_params.h"
#include "tests/gpu/fake_view.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using ::testing::ElementsAre;

std::vector<shared::TensorOneParams> seen;
uint32_t seen_shared;  // of the last launch

int see(const void*, const char*, fake::Dim3, uint32_t, uint32_t shared_bytes, const void* params,
        uint32_t bytes) {
  if (bytes != sizeof(shared::TensorOneParams)) return 0;
  seen_shared = shared_bytes;
  std::memcpy(&seen.emplace_back(), params, bytes);
  return 0;
}

constexpr int64_t kIn = 4096;

class OneRowLaunchesTest : public ::testing::Test {
 protected:
  OneRowLaunchesTest()
      : library_(Vendor::cuda, {.architecture = "sm_90", .lanes = 32}),
        driver_(library_.open()),
        device_(with_driver(Vendor::cuda, *driver_), 0) {
    seen.clear();
    library_.set_launch_hook(see);
  }
  ~OneRowLaunchesTest() override {
    for (const auto& [data, bytes] : allocated_) {
      device_.free(data, bytes, device_.default_stream());
    }
    library_.set_launch_hook(nullptr);
  }

  View memory(View view, size_t bytes) {
    view.data = device_.allocate(bytes, device_.default_stream());
    allocated_.emplace_back(view.data, bytes);
    return view;
  }
  template <typename Block>
  LinearPart part(DType dtype, int64_t outs, int64_t in = kIn) {
    const auto bytes = static_cast<size_t>(outs * shared::packed_layout<Block>(in).row_bytes);
    View weight = memory(fake_view({outs, in}, dtype), bytes);
    weight.packing = gpu::kPlanesPacking;
    return {.weight = weight, .bias = {}, .y = fake_view({1, outs}, DType::bf16)};
  }
  LinearPart plain_part(DType dtype, int64_t outs, int64_t in = kIn) {
    const View weight =
        memory(fake_view({outs, in}, dtype), static_cast<size_t>(row_bytes(dtype, outs * in)));
    return {.weight = weight, .bias = {}, .y = fake_view({1, outs}, DType::bf16)};
  }
  void run(std::span<const LinearPart> parts, DType x = DType::bf16, View norm = {}) {
    const FusedLinearArgs args{.x = fake_view({1, parts[0].weight.size(1)}, x),
                               .norm_weight = norm,
                               .residual = {},
                               .parts = parts};
    gpu::run_first(device_.kernels().fused_linear, args, device_.default_stream());
    EXPECT_EQ(library_.violation(), "");
  }
  // Terms of x for `weight`, in its types and after a norm.
  std::vector<int32_t> terms(const LinearPart& weight) {
    seen.clear();
    for (const DType x : {DType::f32, DType::f16, DType::bf16}) run({&weight, 1}, x);
    run({&weight, 1}, DType::bf16, fake_view({kIn}, DType::bf16));
    std::vector<int32_t> out;
    for (const shared::TensorOneParams& params : seen) out.push_back(params.terms);
    return out;
  }
  // A kernel of one block.
  void run_little() {
    const FillArgs args{.y = fake_view({16}, DType::f32), .value = 0};
    gpu::run_first(device_.kernels().fill, args, device_.default_stream());
  }

  FakeLibrary library_;
  std::unique_ptr<gpu::Driver> driver_;
  gpu::GpuDevice device_;
  std::vector<std::pair<void*, size_t>> allocated_;
};

TEST_F(OneRowLaunchesTest, OfOneProductKnowOfEachOther) {
  const LinearPart parts[] = {part<shared::BlockQ4_K>(DType::q4_k, 4096),
                              part<shared::BlockQ4_K>(DType::q4_k, 1024),
                              part<shared::BlockQ6_K>(DType::q6_k, 1024)};
  run(parts);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].one.part_count, 2);
  EXPECT_EQ(seen[1].one.part_count, 1);
  EXPECT_FALSE(seen[0].after_another);
  EXPECT_TRUE(seen[0].before_another);
  EXPECT_TRUE(seen[1].after_another);
  EXPECT_FALSE(seen[1].before_another);
  seen.clear();
  run(std::span(parts).first(2));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_FALSE(seen[0].after_another);
  EXPECT_FALSE(seen[0].before_another);
}

TEST_F(OneRowLaunchesTest, BehindFewBlocksAskForHalfOfTheirWeights) {
  const LinearPart parts[] = {part<shared::BlockQ8_0>(DType::q8_0, 4096)};
  run(parts);  // no kernel runs before it
  run(parts);  // a kernel of many blocks does
  run_little();
  run(parts);
  ASSERT_EQ(seen.size(), 3u);
  const int32_t blocks = std::min(seen[0].tiles, device_.properties().multiprocessors);
  const int32_t all = (seen[0].tiles + blocks - 1) / blocks * seen[0].steps;
  EXPECT_GE(all, 8);
  EXPECT_EQ(seen[0].early, all);
  EXPECT_EQ(seen[1].early, all);
  EXPECT_EQ(seen[2].early, all / 2);
}

// bf16 has 8 bits and f16 has 11; x in f32 has 24, and 22 of them are kept with f16.
TEST_F(OneRowLaunchesTest, TermsKeepWhatXHas) {
  EXPECT_THAT(terms(plain_part(DType::bf16, 64)), ElementsAre(3, 2, 1, 2));
  EXPECT_THAT(terms(plain_part(DType::f16, 64)), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(terms(part<shared::BlockF8_G128>(DType::f8_g128, 64)), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(terms(part<shared::BlockQ8_0>(DType::q8_0, 64)), ElementsAre(0, 0, 0, 0));
}

// As long as x leaves room for two stages.
TEST_F(OneRowLaunchesTest, MayBeLong) {
  for (const auto& [in, stages] : {std::pair{28672, 8}, {53248, 7}, {90112, 2}}) {
    const LinearPart parts[] = {plain_part(DType::bf16, 64, in)};
    seen.clear();
    run(parts);
    ASSERT_EQ(seen.size(), 1u) << in;
    EXPECT_EQ(seen[0].steps, in / 256);
    EXPECT_EQ(seen[0].stages, stages);
  }
  const LinearPart parts[] = {plain_part(DType::bf16, 64, 131072)};
  seen.clear();
  run(parts);
  EXPECT_EQ(seen.size(), 0u);
}

// For a launch with x and the kernel's static memory, which is less than 3 KiB.
TEST_F(OneRowLaunchesTest, BooksLeaveRoomForStages) {
  using Book = shared::OneBook<shared::BlockIQ2_S>;
  using Stage = shared::PackedStage<shared::BlockIQ2_S>;
  EXPECT_EQ(Book::kBytes, (64 + 32) << 10);
  for (const auto& [in, stages] : {std::pair{4096, 8}, {53248, 4}, {69632, 2}, {73728, 0}}) {
    SCOPED_TRACE(in);
    const LinearPart parts[] = {part<shared::BlockIQ2_S>(DType::iq2_s, 64, in)};
    seen.clear();
    run(parts);
    ASSERT_EQ(seen.size(), stages == 0 ? 0u : 1u);
    if (stages == 0) continue;
    EXPECT_EQ(seen[0].stages, stages);
    const auto ring = static_cast<uint32_t>(stages * 2 * shared::kOneTileGroups * Stage::kBytes);
    EXPECT_EQ(seen_shared, Book::kBytes + ring + static_cast<uint32_t>(in + in / 2 + 32));
    EXPECT_LE(seen_shared, (227u - 3u) << 10);
  }
}

// Any kernel may write them, except within a step, where weights are constants.
TEST_F(OneRowLaunchesTest, PlainWeightsAreReadAheadWhereTheyAreConstants) {
  const LinearPart parts[] = {plain_part(DType::bf16, 32768)};
  run(parts);
  const LinearArgs alone{.x = fake_view({1, kIn}, DType::bf16), .parts = parts};
  gpu::run_first(device_.kernels().linear, alone, device_.default_stream());
  EXPECT_EQ(library_.violation(), "");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[0].early, 0);
  EXPECT_EQ(seen[1].early, 0);
}

}  // namespace
}  // namespace rbee::harness
