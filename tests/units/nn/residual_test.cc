#include "rbee/nn/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>

#include "backends/api/kernel_table.h"
#include "rbee/ops/trace.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/units/engine/far_device.h"

namespace rbee::test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr int64_t kDim = 4;

class ResidualTest : public CheckpointFiles {
 protected:
  void SetUp() override {
    CheckpointFiles::SetUp();
    const StoredTensor tensors[] = {
        {"norm.weight", {kDim}, {1, 2, -1, 0.5f}},
        {"swap.weight", {kDim, kDim}, {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0}},
        {"swap.bias", {kDim}, {0, 0, 0, 100}}};
    checkpoint_ = gguf(tensors);
    const nn::WeightScope scope(*checkpoint_, {.device = &cpu_device()});
    norm_ = nn::RmsNorm(scope / "norm", {.dim = kDim, .eps = 1e-6f});
    swap_ = nn::Linear(scope / "swap", {.in = kDim, .out = kDim, .bias = nn::Bias::required});
  }

  static std::vector<float> normed(const std::vector<float>& x) {
    constexpr float kWeight[] = {1, 2, -1, 0.5f};
    std::vector<float> out(x.size());
    for (size_t row = 0; row < x.size(); row += kDim) {
      double squares = 0;
      for (size_t i = row; i < row + kDim; ++i) squares += double{x[i]} * x[i];
      const double scale = 1 / std::sqrt(squares / kDim + 1e-6);
      for (size_t i = 0; i < kDim; ++i) {
        out[row + i] = static_cast<float>(x[row + i] * scale * kWeight[i]);
      }
    }
    return out;
  }

  static Tensor rows(const std::vector<float>& values) {
    return device_tensor(values, {static_cast<int64_t>(values.size()) / kDim, kDim});
  }

  const std::vector<float> start_{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> branch_{10, -10, 20, -20, 1, 1, 1, 1};
  const std::vector<float> sum_{11, -8, 23, -16, 6, 7, 8, 9};
  std::optional<io::Checkpoint> checkpoint_;
  nn::RmsNorm norm_;
  nn::Linear swap_;  // (a, b, c, d) to (b, a, 2 d, 3 c + 100)
};

TEST_F(ResidualTest, NormOfTheStart) {
  nn::Residual x(rows(start_));
  EXPECT_THAT(x.norm(norm_).to_host<float>(), Pointwise(FloatNear(1e-6f), normed(start_)));
  EXPECT_EQ(x.value().to_host<float>(), start_);
}

TEST_F(ResidualTest, NormAddsThePendingBranchOnce) {
  nn::Residual x(rows(start_));
  x.add(rows(branch_));
  EXPECT_THAT(x.norm(norm_).to_host<float>(), Pointwise(FloatNear(1e-6f), normed(sum_)));
  EXPECT_THAT(x.norm(norm_).to_host<float>(), Pointwise(FloatNear(1e-6f), normed(sum_)));
  EXPECT_EQ(x.value().to_host<float>(), sum_);
}

TEST_F(ResidualTest, ValueAddsThePendingBranchOnce) {
  nn::Residual x(rows(start_));
  x.add(rows(branch_));
  EXPECT_EQ(x.value().to_host<float>(), sum_);
  EXPECT_EQ(x.value().to_host<float>(), sum_);
  EXPECT_THAT(x.norm(norm_).to_host<float>(), Pointwise(FloatNear(1e-6f), normed(sum_)));
}

TEST_F(ResidualTest, TwoBranchesWithoutANormBetween) {
  nn::Residual x(rows(start_));
  x.add(rows(branch_));
  x.add(rows(branch_));
  EXPECT_THAT(x.value().to_host<float>(), ElementsAre(21, -18, 43, -36, 7, 8, 9, 10));
}

TEST_F(ResidualTest, KeepRowsTakesThePendingBranchAlong) {
  nn::Residual x(rows(start_));
  x.add(rows(branch_));
  x.keep_rows(device_tensor(std::vector<int32_t>{1}, {1}));
  EXPECT_THAT(x.value().to_host<float>(), ElementsAre(6, 7, 8, 9));
}

TEST_F(ResidualTest, KeepRowsInAnyOrder) {
  nn::Residual x(rows(start_));
  x.keep_rows(device_tensor(std::vector<int32_t>{1, 0, 1}, {3}));
  EXPECT_THAT(x.value().to_host<float>(), ElementsAre(5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(ResidualTest, KeepRowsOfNothingKeepsAll) {
  nn::Residual x(rows(start_));
  x.add(rows(branch_));
  x.keep_rows({});
  EXPECT_EQ(x.value().to_host<float>(), sum_);
}

TEST_F(ResidualTest, AddsALayersResult) {
  nn::Residual x(rows(start_));
  x.add(rows(branch_));
  x.add(swap_, rows(start_));
  EXPECT_THAT(x.value().to_host<float>(),
              ElementsAre(11 + 2, -8 + 1, 23 + 8, -16 + 109, 6 + 6, 7 + 5, 8 + 16, 9 + 121));
}

TEST_F(ResidualTest, LayersReadTheNorm) {
  const std::vector<float> n = normed(sum_);
  const std::vector<float> wanted{n[1], n[0], 2 * n[3], 3 * n[2] + 100,
                                  n[5], n[4], 2 * n[7], 3 * n[6] + 100};
  const LinearWeights* const layer = &swap_.weights();
  nn::Residual pending(rows(start_));
  pending.add(rows(branch_));
  nn::Residual whole(rows(sum_));
  for (nn::Residual* x : {&pending, &whole}) {
    const Tensor y = linear_many(x->normed_input(norm_), {&layer, 1}).front();
    EXPECT_THAT(y.to_host<float>(), Pointwise(FloatNear(1e-5f), wanted));
    EXPECT_EQ(x->value().to_host<float>(), sum_);
  }
}

// A device whose linear layers cannot add a residual.
class LayersApart final : public engine::FarDevice {
 public:
  explicit LayersApart(bool norms) : kernels_(cpu_device().kernels()) {
    kernels_.fused_linear = {};
    if (!norms) kernels_.linear_norm = {};
  }
  const KernelTable& kernels() const override { return kernels_; }

 private:
  KernelTable kernels_;
};

class ResidualApartTest : public ResidualTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    ResidualTest::SetUp();
    const nn::WeightScope scope(*checkpoint_, {.device = &device_});
    norm_ = nn::RmsNorm(scope / "norm", {.dim = kDim, .eps = 1e-6f});
    swap_ = nn::Linear(scope / "swap", {.in = kDim, .out = kDim, .bias = nn::Bias::required});
    set_op_trace([this](const TracedOp& op) { ops_.emplace_back(op.op); });
  }
  void TearDown() override {
    set_op_trace(nullptr);
    // The device goes first.
    norm_ = {};
    swap_ = {};
    ResidualTest::TearDown();
  }

  Tensor far_rows(const std::vector<float>& values) { return rows(values).to(device_); }
  std::vector<std::string> take_ops() { return std::exchange(ops_, {}); }

  // start_ and the layer's result of it.
  const std::vector<float> with_layer_{1 + 2, 2 + 1, 3 + 8, 4 + 109, 5 + 6, 6 + 5, 7 + 16, 8 + 121};
  LayersApart device_{GetParam()};
  std::vector<std::string> ops_;
};

TEST_P(ResidualApartTest, TheNormTakesTheLayerWhereThereIsAKernelForBoth) {
  nn::Residual x(far_rows(start_));
  x.add(swap_, far_rows(start_));
  take_ops();
  EXPECT_THAT(x.norm(norm_).to_host<float>(), Pointwise(FloatNear(1e-6f), normed(with_layer_)));
  const std::vector<std::string> apart{"linear", "add_rms_norm"}, together{"linear_norm"};
  EXPECT_EQ(take_ops(), GetParam() ? together : apart);
  EXPECT_EQ(x.value().to_host<float>(), with_layer_);
  EXPECT_THAT(take_ops(), testing::IsEmpty());
}

TEST_P(ResidualApartTest, WhatElseNeedsTheSumHasTheLayerComputedOnce) {
  nn::Residual x(far_rows(start_));
  x.add(swap_, far_rows(start_));
  EXPECT_EQ(x.value().to_host<float>(), with_layer_);
  take_ops();
  EXPECT_THAT(x.norm(norm_).to_host<float>(), Pointwise(FloatNear(1e-6f), normed(with_layer_)));
  EXPECT_EQ(take_ops(), std::vector<std::string>{"rms_norm"});

  nn::Residual kept(far_rows(start_));
  kept.add(swap_, far_rows(start_));
  kept.keep_rows(device_tensor(std::vector<int32_t>{1}, {1}).to(device_));
  EXPECT_THAT(kept.value().to_host<float>(), ElementsAre(11, 11, 23, 129));
}

INSTANTIATE_TEST_SUITE_P(Kernels, ResidualApartTest, testing::Bool());

// The caller's tensors stay unchanged.
TEST_F(ResidualTest, InputsKeepTheirValues) {
  const Tensor start = rows(start_);
  const Tensor branch = rows(branch_);
  nn::Residual x(start);
  x.add(branch);
  x.norm(norm_);
  x.add(branch);
  x.value();
  EXPECT_EQ(start.to_host<float>(), start_);
  EXPECT_EQ(branch.to_host<float>(), branch_);
}

}  // namespace
}  // namespace rbee::test
