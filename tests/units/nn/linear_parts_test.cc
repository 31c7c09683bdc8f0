// Layers of which a rank of a group has some inputs or rows: the ranks' parts add up to the layer.

#include <gtest/gtest.h>

#include <cmath>

#include "rbee/nn/linear.h"
#include "rbee/nn/mlp.h"
#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

constexpr int64_t kIn = 512, kOut = 24, kRows = 3;

// SmolLM2-135M, whose three key heads go 2:1 to two ranks: 64 elements in a head of three queries,
// a key and a value, rows of 576, and 1,536 columns of three matrices.
TEST(ShareBeside, ColumnsEvenOutUnlikeHeads) {
  const double head = 8.0 * 64 * 576, column = 3.0 * 576;
  group::Share share = nn::share_beside({.ranks = 2}, 1536 * column, std::vector{2 * head, head});
  EXPECT_EQ(share.range(1536, 32, 0), (group::Range{0, 672}));
  const double first = 2 * head + 672 * column, second = head + 864 * column;
  EXPECT_LT(std::abs(first - second), 32 * column);
  // 3:1 of all elements, of which the heads are 3:0.
  share =
      nn::share_beside({.ranks = 2, .parts = {3, 1}}, 1536 * column, std::vector{3 * head, 0.0});
  const double all = 3 * head + 1536 * column;
  EXPECT_NEAR(share.range(1536, 1, 1).count * column, all / 4, column);
  // What one has besides is more than its part of all: it gets nothing.
  share = nn::share_beside({.ranks = 2}, 10, std::vector{100.0, 0.0});
  EXPECT_EQ(share.range(10, 1, 0).count, 0);
  EXPECT_TRUE(nn::share_beside({.ranks = 2}, 10, {}).parts.empty());
}

class LinearPartsTest : public CheckpointFiles, public testing::WithParamInterface<DType> {
 protected:
  void SetUp() override {
    CheckpointFiles::SetUp();
    StoredTensor matrix{"layer.weight", {kOut, kIn}, random_values(kOut * kIn, 1), GetParam()};
    values_ = stored_values(matrix);
    const std::vector<StoredTensor> tensors{std::move(matrix),
                                            {"layer.bias", {kOut}, random_values(kOut, 2)}};
    checkpoint_ = gguf(tensors);
    bias_ = tensors[1].values;
  }

  // Matrices stay as stored, so that a CPU multiplies in f32.
  nn::WeightScope scope(int rank = 0) const {
    return {*checkpoint_,
            {.device = &cpu_device(),
             .own_names = true,
             .pack = false,
             .group = {.share = {.rank = rank, .ranks = 2}, .view = {.rank = rank, .ranks = 2}}}};
  }
  nn::Linear of_inputs(group::Range inputs, nn::WeightScope from) const {
    return {from / "layer", {.in = kIn, .out = kOut, .bias = nn::Bias::required, .inputs = inputs}};
  }
  double wanted(int64_t row, int64_t out, const group::Range& inputs = {0, kIn}) const {
    double sum = inputs.first == 0 && inputs.count > 0 ? bias_[static_cast<size_t>(out)] : 0;
    for (int64_t i = inputs.first; i < inputs.end(); ++i) {
      sum += double{x_[static_cast<size_t>(row * kIn + i)]} *
             values_[static_cast<size_t>(out * kIn + i)];
    }
    return sum;
  }
  Tensor columns_of_x(const group::Range& inputs) const {
    std::vector<float> own;
    for (int64_t row = 0; row < kRows; ++row) {
      const auto first = x_.begin() + row * kIn + inputs.first;
      own.insert(own.end(), first, first + inputs.count);
    }
    return device_tensor(own, {kRows, inputs.count});
  }

  std::optional<io::Checkpoint> checkpoint_;
  std::vector<float> values_, bias_, x_ = random_values(kRows * kIn, 3);
};

// The cuts are at the ends of blocks, within them, and such that a part lies within one block or is
// empty. The bias is in the part that has the first input.
TEST_P(LinearPartsTest, PartsOfInputsHaveTheirSums) {
  for (const group::Range& inputs :
       {group::Range{0, 256}, {256, 256}, {0, 96}, {96, 300}, {396, 116}, {40, 9}, {512, 0}}) {
    SCOPED_TRACE(cat(inputs.first, " + ", inputs.count));
    const nn::Linear part = of_inputs(inputs, scope());
    const std::vector<float> y = part.partial(columns_of_x(inputs)).to_host<float>();
    ASSERT_EQ(std::ssize(y), kRows * kOut);
    for (int64_t i = 0; i < kRows * kOut; ++i) {
      EXPECT_NEAR(y[static_cast<size_t>(i)], wanted(i / kOut, i % kOut, inputs), 2e-4) << i;
    }
    EXPECT_EQ(part.group().ranks, 2);
  }
}

TEST_P(LinearPartsTest, PartsOfRows) {
  const nn::LinearShape whole{.in = kIn, .out = kOut, .bias = nn::Bias::required};
  for (const group::Range& rows : {group::Range{0, 5}, {5, 19}}) {
    const nn::Linear part(scope() / "layer", nn::part_of(whole, rows));
    EXPECT_TRUE(part.group().alone());
    const std::vector<float> y = part(columns_of_x({0, kIn})).to_host<float>();
    for (int64_t i = 0; i < kRows * rows.count; ++i) {
      EXPECT_NEAR(y[static_cast<size_t>(i)], wanted(i / rows.count, rows.first + i % rows.count),
                  2e-4);
    }
  }
}

// Every rank's figures are the model's, and no rank warns of tensors that it left to others.
TEST_P(LinearPartsTest, WhatARankLeavesCounts) {
  const nn::WeightScope first = scope(0), second = scope(1);
  of_inputs({0, kIn}, first);
  of_inputs({kIn, 0}, second);
  EXPECT_EQ(first.figures().parameters, kOut * kIn + kOut);
  EXPECT_EQ(second.figures().parameters, kOut * kIn + kOut);
  EXPECT_EQ(second.figures().resident_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, LinearPartsTest,
                         testing::Values(DType::f32, DType::bf16, DType::q8_0, DType::q4_k),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace rbee::test
