// Linear, Embedding, the norms and Mlp: the weights they accept, and their formulas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <list>

#include "rbee/nn/embedding.h"
#include "rbee/nn/mlp.h"
#include "rbee/nn/norm.h"
#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

using nn::Bias;
using nn::WeightScope;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

class LayersTest : public CheckpointFiles {
 protected:
  // The scope of a GGUF file with these tensors.
  WeightScope scope(std::span<const StoredTensor> tensors) {
    checkpoints_.push_back(gguf(tensors));
    return WeightScope(checkpoints_.back(), {.device = &cpu_device()});
  }

 private:
  std::list<io::Checkpoint> checkpoints_;
};

TEST_F(LayersTest, LinearTakesItsBiasAsAsked) {
  const StoredTensor tensors[] = {{"with.weight", {2, 3}, {1, 0, 0, 0, 1, 1}},
                                  {"with.bias", {2}, {10, 20}},
                                  {"without.weight", {2, 3}, {1, 0, 0, 0, 1, 1}}};
  const WeightScope weights = scope(tensors);
  const Tensor x = device_tensor(std::vector<float>{1, 2, 3}, {1, 3});
  const auto run = [&](const char* layer, Bias bias) {
    return nn::Linear(weights / layer, {.in = 3, .out = 2, .bias = bias})(x).to_host<float>();
  };
  EXPECT_THAT(run("with", Bias::none), ElementsAre(1, 5));
  EXPECT_THAT(run("with", Bias::optional), ElementsAre(11, 25));
  EXPECT_THAT(run("with", Bias::required), ElementsAre(11, 25));
  EXPECT_THAT(run("without", Bias::none), ElementsAre(1, 5));
  EXPECT_THAT(run("without", Bias::optional), ElementsAre(1, 5));
  expect_error(Code::not_found, {"without.bias", "(2)"}, [&] { run("without", Bias::required); });
}

TEST_F(LayersTest, LinearOfSomeRowsTakesTheBiasOfThoseRows) {
  const StoredTensor tensors[] = {{"fused.weight", {4, 2}, {1, 0, 0, 1, 1, 1, 2, 2}},
                                  {"fused.bias", {4}, {1, 2, 3, 4}}};
  const nn::Linear layer(
      scope(tensors) / "fused",
      {.in = 2, .out = 2, .bias = Bias::required, .first_row = 2, .total_rows = 4});
  const Tensor x = device_tensor(std::vector<float>{10, 1}, {1, 2});
  EXPECT_THAT(layer(x).to_host<float>(), ElementsAre(11 + 3, 22 + 4));
}

TEST_F(LayersTest, EmbeddingScalesRowsOfAnyStoredType) {
  const Tensor ids = device_tensor(std::vector<int32_t>{2, 0, 2}, {3});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    const StoredTensor table{"table.weight", {3, 32}, random_values(96, 5), dtype};
    const nn::Embedding embedding(scope({&table, 1}) / "table", 3, 32, 2.5f);
    const std::vector<float> values = stored_values(table);
    std::vector<float> wanted;
    for (const size_t row : {2, 0, 2}) {
      for (size_t i = 0; i < 32; ++i) wanted.push_back(values[row * 32 + i] * 2.5f);
    }
    EXPECT_THAT(embedding(ids).to_host<float>(), Pointwise(FloatNear(1e-6f), wanted))
        << name(dtype);
  }
}

TEST_F(LayersTest, TakeRows) {
  const Tensor x = device_tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor rows = device_tensor(std::vector<int32_t>{2, 0}, {2});
  EXPECT_THAT(nn::take_rows(x, rows).to_host<float>(), ElementsAre(5, 6, 1, 2));
}

TEST_F(LayersTest, RmsNormWithOffset) {
  const StoredTensor weight{"norm.weight", {2}, {0.5f, -1}};
  const WeightScope norm = scope({&weight, 1}) / "norm";
  const Tensor x = device_tensor(std::vector<float>{3, 4}, {1, 2});
  // mean(x^2) + eps = 12.5 + 3.5 = 16
  EXPECT_THAT(nn::RmsNorm(norm, {.dim = 2, .eps = 3.5f})(x).to_host<float>(),
              Pointwise(FloatNear(1e-6f), {0.375f, -1.0f}));
  const nn::RmsNorm shifted(norm, {.dim = 2, .eps = 3.5f, .weight_offset = 1});
  EXPECT_TRUE(shifted.defined());
  EXPECT_THAT(shifted(x).to_host<float>(), Pointwise(FloatNear(1e-6f), {1.125f, 0.0f}));
  EXPECT_FALSE(nn::RmsNorm().defined());
}

TEST_F(LayersTest, RmsNormOfASum) {
  const StoredTensor weight{"norm.weight", {2}, {1, 2}};
  const nn::RmsNorm norm(scope({&weight, 1}) / "norm", {.dim = 2, .eps = 3.5f});
  const SumAndNorm both = norm.add(device_tensor(std::vector<float>{1, 1}, {1, 2}),
                                   device_tensor(std::vector<float>{2, 3}, {1, 2}));
  EXPECT_THAT(both.sum.to_host<float>(), ElementsAre(3, 4));
  EXPECT_THAT(both.norm.to_host<float>(), Pointwise(FloatNear(1e-6f), {0.75f, 2.0f}));
}

TEST_F(LayersTest, LayerNormWithAndWithoutBias) {
  const StoredTensor tensors[] = {{"plain.weight", {2}, {1, 2}},
                                  {"biased.weight", {2}, {1, 2}},
                                  {"biased.bias", {2}, {10, 20}}};
  const WeightScope weights = scope(tensors);
  const nn::NormOptions options{.dim = 2, .eps = 3};
  // mean 5, variance 1, deviation sqrt(1 + 3) = 2
  const Tensor x = device_tensor(std::vector<float>{4, 6}, {1, 2});
  EXPECT_THAT(nn::LayerNorm(weights / "plain", options)(x).to_host<float>(),
              Pointwise(FloatNear(1e-6f), {-0.5f, 1.0f}));
  EXPECT_THAT(nn::LayerNorm(weights / "biased", options)(x).to_host<float>(),
              Pointwise(FloatNear(1e-5f), {9.5f, 21.0f}));
}

// down * (silu(gate * x) * (up * x)), written out
std::vector<float> mlp_of(const std::vector<float>& x, const std::vector<float>& gate,
                          const std::vector<float>& up, const std::vector<float>& down) {
  const size_t dim = x.size();
  const size_t width = gate.size() / dim;
  std::vector<float> out(dim, 0);
  for (size_t j = 0; j < width; ++j) {
    double g = 0, u = 0;
    for (size_t i = 0; i < dim; ++i) {
      g += double{x[i]} * gate[j * dim + i];
      u += double{x[i]} * up[j * dim + i];
    }
    const double hidden = g / (1 + std::exp(-g)) * u;
    for (size_t i = 0; i < dim; ++i) out[i] += static_cast<float>(hidden * down[i * width + j]);
  }
  return out;
}

TEST_F(LayersTest, MlpOfSeparateAndFusedMatrices) {
  constexpr int64_t kDim = 4, kWidth = 6;
  const std::vector<float> gate = random_values(kDim * kWidth, 1);
  const std::vector<float> up = random_values(kDim * kWidth, 2);
  const std::vector<float> down = random_values(kDim * kWidth, 3);
  const std::vector<float> x = random_values(kDim, 4);
  std::vector<float> both = gate;
  both.insert(both.end(), up.begin(), up.end());
  const StoredTensor separate[] = {{"blk.0.ffn_gate.weight", {kWidth, kDim}, gate},
                                   {"blk.0.ffn_up.weight", {kWidth, kDim}, up},
                                   {"blk.0.ffn_down.weight", {kDim, kWidth}, down}};
  const StoredTensor fused[] = {{"blk.0.ffn_up.weight", {2 * kWidth, kDim}, both},
                                {"blk.0.ffn_down.weight", {kDim, kWidth}, down}};
  const Tensor input = device_tensor(x, {1, kDim});
  const nn::MlpSpec spec{.dim = kDim, .ffn_dim = kWidth};
  nn::MlpSpec fused_spec = spec;
  fused_spec.fused = true;
  const std::vector<float> wanted = mlp_of(x, gate, up, down);
  EXPECT_THAT(nn::Mlp(scope(separate).layer(0), spec)(input).to_host<float>(),
              Pointwise(FloatNear(1e-5f), wanted));
  EXPECT_THAT(nn::Mlp(scope(fused).layer(0), fused_spec)(input).to_host<float>(),
              Pointwise(FloatNear(1e-5f), wanted));
}

TEST_F(LayersTest, MlpWithBiasesAndAnotherActivation) {
  const StoredTensor tensors[] = {
      {"blk.0.ffn_gate.weight", {1, 1}, {1}}, {"blk.0.ffn_gate.bias", {1}, {-5}},
      {"blk.0.ffn_up.weight", {1, 1}, {2}},   {"blk.0.ffn_up.bias", {1}, {1}},
      {"blk.0.ffn_down.weight", {1, 1}, {3}}, {"blk.0.ffn_down.bias", {1}, {100}}};
  const nn::MlpSpec spec{
      .dim = 1, .ffn_dim = 1, .activation = GateOp::relu, .bias = Bias::required};
  const nn::Mlp mlp(scope(tensors).layer(0), spec);
  // relu(x - 5) * (2 x + 1) * 3 + 100
  const Tensor x = device_tensor(std::vector<float>{7, 4}, {2, 1});
  EXPECT_THAT(mlp(x).to_host<float>(), ElementsAre(2 * 15 * 3 + 100, 100));
}

}  // namespace
}  // namespace rbee::test
