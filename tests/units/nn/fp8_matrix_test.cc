// How layers hold the matrices of FP8 folders: in 8 bits if groups of 128 inputs share a scale,
// else in 16.
#include <array>
#include <cmath>
#include <fstream>

#include "rbee/core/half.h"
#include "rbee/io/safetensors_writer.h"
#include "rbee/nn/linear.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/linear.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/units/nn/matrix_names.h"

namespace rbee::test {
namespace {

using nn::WeightScope;

class Fp8MatrixTest : public testing::Test {
 protected:
  static constexpr int64_t kBlock = 128, kRows = 200;  // the last block of rows is cut

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbee-fp8-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static uint8_t code_at(int64_t i) {
    const auto code = static_cast<uint8_t>(i * 11 + i / 256);
    return (code & 0x7f) == 0x7f ? uint8_t{0} : code;
  }
  static float scale_at(int64_t block) { return 1e-3f + 1e-4f * static_cast<float>(block); }
  // For an element of a matrix of (kRows, in).
  static float value_at(int64_t row, int64_t column, int64_t in) {
    const int64_t across = (in + kBlock - 1) / kBlock;
    return to_float(f8e4m3{code_at(row * in + column)}) *
           scale_at(row / kBlock * across + column / kBlock);
  }

  // Matrices of (kRows, in) with a scale for each block of 128 x 128.
  io::Checkpoint folder(int64_t in, std::initializer_list<const char*> layers,
                        std::string_view more = "") const {
    std::ofstream(folder_ / "config.json")
        << R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128])" << more
        << "}}";
    const int64_t down = (kRows + kBlock - 1) / kBlock, across = (in + kBlock - 1) / kBlock;
    std::vector<float> scales;
    for (int64_t i = 0; i < down * across; ++i) scales.push_back(scale_at(i));
    std::vector<uint8_t> codes;
    for (int64_t i = 0; i < kRows * in; ++i) codes.push_back(code_at(i));
    io::SafetensorsWriter writer;
    for (const char* layer : layers) {
      writer.add_tensor(cat(layer, ".weight_scale_inv"), DType::f32, Shape{down, across});
    }
    for (const char* layer : layers) {
      writer.add_tensor(cat(layer, ".weight"), DType::f8e4m3, Shape{kRows, in});
    }
    writer.begin(folder_ / "model.safetensors");
    for (size_t i = 0; i < layers.size(); ++i) writer.write(std::as_bytes(std::span(scales)));
    for (size_t i = 0; i < layers.size(); ++i) writer.write(std::as_bytes(std::span(codes)));
    writer.finish();
    return io::Checkpoint::open(folder_);
  }

  // Compares each product with rows of x with sums in double; x in f32, one row.
  static void expect_products(const Tensor& weight, int64_t first, int64_t in) {
    const std::vector<float> x = random_values(static_cast<size_t>(in), 3);
    const std::vector<float> y = linear(device_tensor(x, {1, in}), weight).to_host<float>();
    for (size_t out = 0; out < y.size(); ++out) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < in; ++k) {
        const double term = double{x[static_cast<size_t>(k)]} *
                            double{value_at(first + static_cast<int64_t>(out), k, in)};
        sum += term;
        size += std::fabs(term);
      }
      EXPECT_NEAR(y[out], sum, 1e-6 * size) << "output " << first + static_cast<int64_t>(out);
    }
  }

 private:
  std::filesystem::path folder_;
};

// For int8 arithmetic they become blocks that kernels multiply in int8.
TEST_F(Fp8MatrixTest, BecomeBlocksForInt8) {
  constexpr int64_t kIn = 256;
  const io::Checkpoint checkpoint = folder(kIn, {"model.layers.0.q_proj"});
  const WeightScope root(checkpoint, {.device = &cpu_device(),
                                      .names = kMatrixNames,
                                      .pack = false,
                                      .may_quantize = [](std::string_view) { return true; }});
  const Tensor weight =
      (root.layer(0) / "attn_q").matrix("weight", {.first = 100, .count = 50, .total = kRows}, kIn);
  ASSERT_EQ(weight.dtype(), DType::q8_0);
  const std::vector<float> values = cast(weight, DType::f32).to_host<float>();
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const float wanted = value_at(100 + i / kIn, i % kIn, kIn);
    // Half a step of the largest code, 448, or bf16's last bit.
    EXPECT_NEAR(values[static_cast<size_t>(i)], wanted, 3.0f * scale_at(3)) << i;
  }
}

TEST_F(Fp8MatrixTest, StayInEightBits) {
  constexpr int64_t kIn = 384;
  const io::Checkpoint checkpoint = folder(kIn, {"model.layers.0.q_proj"});
  for (const bool pack : {false, true}) {
    const WeightScope root(checkpoint,
                           {.device = &cpu_device(), .names = kMatrixNames, .pack = pack});
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, kRows}, {120, 48}}) {
      SCOPED_TRACE(cat(pack ? "packed" : "plain", ", rows from ", first));
      const Tensor weight = (root.layer(0) / "attn_q").matrix("weight", {first, count, kRows}, kIn);
      EXPECT_EQ(weight.dtype(), DType::f8_g128);
      EXPECT_EQ(weight.packing() != 0, pack);
      expect_products(weight, first, kIn);
    }
  }
}

// If the checkpoint says so and layers have 16 bits, kernels may round their inputs.
TEST_F(Fp8MatrixTest, RoundInputsAsTheCheckpointSays) {
  constexpr int64_t kIn = 128;
  const auto may_round_to = [&](std::string_view more, DType activations) {
    const io::Checkpoint checkpoint = folder(kIn, {"model.layers.0.q_proj"}, more);
    const WeightScope root(
        checkpoint, {.device = &cpu_device(), .names = kMatrixNames, .activations = activations});
    return nn::Linear(root.layer(0) / "attn_q", {.in = kIn, .out = kRows}).weights().may_round_to;
  };
  constexpr std::string_view kDynamic = R"(,"activation_scheme":"dynamic")";
  EXPECT_EQ(may_round_to(kDynamic, DType::bf16), DType::f8e4m3);
  EXPECT_EQ(may_round_to(kDynamic, DType::f16), DType::f8e4m3);
  EXPECT_EQ(may_round_to(kDynamic, DType::f32), DType::f32);
  EXPECT_EQ(may_round_to("", DType::bf16), DType::f32);
}

// One f32 scale for 128 weights; panels have 16 rows, here 12.5, rounded up.
TEST_F(Fp8MatrixTest, TakeABytePerWeight) {
  constexpr int64_t kIn = 512;
  const io::Checkpoint checkpoint = folder(kIn, {"model.layers.0.q_proj"});
  const WeightScope root(checkpoint, {.device = &cpu_device(), .names = kMatrixNames});
  (root.layer(0) / "attn_q").matrix("weight", {0, kRows, kRows}, kIn);
  EXPECT_EQ(root.figures().resident_bytes, (kRows + 8) * kIn * 132 / 128);
  EXPECT_EQ(root.figures().most_common(), DType::f8e4m3);
}

TEST_F(Fp8MatrixTest, ExpertsToo) {
  constexpr int64_t kIn = 128;
  const io::Checkpoint checkpoint =
      folder(kIn, {"model.layers.0.experts.0.up_proj", "model.layers.0.experts.1.up_proj"});
  const WeightScope root(checkpoint,
                         {.device = &cpu_device(), .names = kMatrixNames, .pack = false});
  const Tensor experts = (root.layer(0) / "ffn_up_exps").experts("weight", {2, kRows, kIn});
  EXPECT_EQ(experts.dtype(), DType::f8_g128);
  const std::vector<float> values = cast(experts, DType::f32).to_host<float>();
  ASSERT_EQ(static_cast<int64_t>(values.size()), 2 * kRows * kIn);
  for (int64_t i = 0; i < 2 * kRows * kIn; ++i) {
    const int64_t at = i % (kRows * kIn);
    EXPECT_EQ(values[static_cast<size_t>(i)], value_at(at / kIn, at % kIn, kIn)) << i;
  }
}

// Files of image models: codes without a scale, or with one for the whole matrix.
TEST_F(Fp8MatrixTest, StayInEightBitsWithoutScales) {
  constexpr int64_t kIn = 256;
  std::vector<uint8_t> codes;
  for (int64_t i = 0; i < kRows * kIn; ++i) codes.push_back(code_at(i));
  const auto scope = [](const io::Checkpoint& checkpoint, bool widen) {
    return WeightScope(checkpoint, {.device = &cpu_device(),
                                    .own_names = true,
                                    .pack = false,
                                    .plain_fp8 = true,
                                    .widen_fp8 = widen,
                                    .activations = DType::bf16});
  };
  for (const float scale : {1.0f, 0.375f}) {
    io::TensorEntry entry{.name = "a.weight",
                          .dtype = DType::f8e4m3,
                          .shape = Shape{kRows, kIn},
                          .data = std::as_bytes(std::span(codes)),
                          .file = nullptr,
                          .owner = nullptr};
    entry.scale = scale;
    const io::Checkpoint checkpoint = io::Checkpoint::of({entry}, "test");
    const Tensor weight = (scope(checkpoint, false) / "a").matrix("weight", {100, 50, kRows}, kIn);
    ASSERT_EQ(weight.dtype(), DType::f8_g128);
    const Tensor wide = (scope(checkpoint, true) / "a").matrix("weight", {100, 50, kRows}, kIn);
    ASSERT_EQ(wide.dtype(), DType::bf16);
    const std::vector<float> values = cast(weight, DType::f32).to_host<float>();
    const std::vector<float> widened = cast(wide, DType::f32).to_host<float>();
    for (int64_t i = 0; i < 50 * kIn; ++i) {
      const float wanted = scale * to_float(f8e4m3{code_at(100 * kIn + i)});
      EXPECT_EQ(values[static_cast<size_t>(i)], wanted) << i;
      EXPECT_EQ(widened[static_cast<size_t>(i)], wanted) << i;
    }
  }
}

// Rows that are no multiple of a group, and tensors that are no matrix.
TEST_F(Fp8MatrixTest, OthersBecomeSixteenBits) {
  constexpr int64_t kIn = 192;
  const io::Checkpoint checkpoint = folder(kIn, {"model.layers.0.q_proj", "model.embed_tokens"});
  for (const DType activations : {DType::f32, DType::f16, DType::bf16}) {
    const WeightScope root(checkpoint, {.device = &cpu_device(),
                                        .names = kMatrixNames,
                                        .pack = false,
                                        .activations = activations});
    const DType wanted = activations == DType::f16 ? DType::f16 : DType::bf16;
    EXPECT_EQ((root.layer(0) / "attn_q").matrix("weight", {0, kRows, kRows}, kIn).dtype(), wanted);
    EXPECT_EQ((root / "token_embd").table("weight", {kRows, kIn}).dtype(), wanted);
  }
}

}  // namespace
}  // namespace rbee::test
