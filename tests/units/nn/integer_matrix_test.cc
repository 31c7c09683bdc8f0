// How layers hold the matrices of AWQ, GPTQ and compressed-tensors folders.
#include <array>
#include <cmath>

#include "rbee/core/half.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/residual.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/linear.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/integer_folder.h"
#include "tests/units/nn/matrix_names.h"

namespace rbee::test {
namespace {

using nn::WeightScope;

constexpr IntegerForm kForms[] = {IntegerForm::awq, IntegerForm::gptq, IntegerForm::gptq_v2,
                                  IntegerForm::compressed};
constexpr const char* kLayer = "model.layers.0.q_proj";

class IntegerMatrixTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbee-int-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  io::Checkpoint folder(IntegerForm form, const PlainIntegers& matrix,
                        std::initializer_list<const char*> layers) const {
    std::vector<RawTensor> all;
    for (const char* layer : layers) {
      for (RawTensor& tensor : integer_tensors(form, matrix, layer)) {
        all.push_back(std::move(tensor));
      }
    }
    write_raw_folder(folder_, integer_config(form, matrix), all);
    return io::Checkpoint::open(folder_);
  }

  // Checks rows [first, ...): each element must be within `relative` of zero * scale.
  static void expect_elements(const Tensor& weight, int64_t first, const PlainIntegers& matrix,
                              float relative) {
    const std::vector<float> values = cast(weight, DType::f32).to_host<float>();
    ASSERT_EQ(values.size() % static_cast<size_t>(matrix.in), 0u);
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t row = first + static_cast<int64_t>(i) / matrix.in;
      const int64_t input = static_cast<int64_t>(i) % matrix.in;
      const int group = matrix.group_of(input);
      const float offset = static_cast<float>(matrix.zero(row, group)) * matrix.scale(row, group);
      ASSERT_NEAR(values[i], matrix.value(row, input), offset * relative) << row << ", " << input;
    }
  }

  // Packed kernels round x to 8 bits in blocks of 32: an error of 1/254 of the largest.
  static void expect_products(const Tensor& weight, int64_t first, const PlainIntegers& matrix) {
    const std::vector<float> x = random_values(static_cast<size_t>(matrix.in), 3);
    const std::vector<float> y = linear(device_tensor(x, {1, matrix.in}), weight).to_host<float>();
    for (size_t out = 0; out < y.size(); ++out) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < matrix.in; ++k) {
        const double w = matrix.value(first + static_cast<int64_t>(out), k);
        sum += double{x[static_cast<size_t>(k)]} * w;
        size += w * w;
      }
      // Rounding errors of different inputs are independent.
      EXPECT_NEAR(y[out], sum, 5.0 / 254 * std::sqrt(size)) << "output " << out;
    }
  }

  // Compares each row of y with sums over x; the same bound.
  static void expect_sums(const std::vector<float>& y, const std::vector<float>& x,
                          const PlainIntegers& matrix) {
    const size_t rows = x.size() / static_cast<size_t>(matrix.in);
    ASSERT_EQ(y.size(), rows * static_cast<size_t>(matrix.rows));
    for (size_t i = 0; i < y.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / matrix.rows,
                 out = static_cast<int64_t>(i) % matrix.rows;
      double sum = 0, size = 0;
      for (int64_t k = 0; k < matrix.in; ++k) {
        const double w = matrix.value(out, k);
        sum += double{x[static_cast<size_t>(row * matrix.in + k)]} * w;
        size += w * w;
      }
      ASSERT_NEAR(y[i], sum, 5.0 / 254 * std::sqrt(size)) << "row " << row << ", output " << out;
    }
  }

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

TEST_F(IntegerMatrixTest, StayInTheirBits) {
  const auto expect_type = [&](IntegerForm form, const PlainIntegers& matrix, DType dtype) {
    const float relative = dtype == DType::q4_1 ? 0x1p-11f : 0.0f;
    const io::Checkpoint checkpoint = folder(form, matrix, {kLayer});
    for (const bool pack : {false, true}) {
      const WeightScope root(checkpoint,
                             {.device = &cpu_device(), .names = kMatrixNames, .pack = pack});
      for (const auto& [first, count] :
           {std::pair<int64_t, int64_t>{0, matrix.rows}, {120, 48}, {67, 3}}) {
        SCOPED_TRACE(cat("form ", static_cast<int>(form), ", ", matrix.bits, " bits, rows from ",
                         first, pack ? ", packed" : ""));
        const Tensor weight =
            (root.layer(0) / "attn_q").matrix("weight", {first, count, matrix.rows}, matrix.in);
        EXPECT_EQ(weight.dtype(), dtype);
        if (pack) {
          expect_products(weight, first, matrix);
        } else {
          expect_elements(weight, first, matrix, relative);
        }
      }
    }
  };
  for (const IntegerForm form : kForms) {
    expect_type(form, {.rows = 200, .in = 256, .group = 128}, DType::q4_1);
    expect_type(form, {.rows = 200, .in = 256, .group = 128, .symmetric = true}, DType::q4_0);
    if (form == IntegerForm::awq) continue;
    expect_type(form, {.rows = 200, .in = 256, .group = 64, .bits = 8, .symmetric = true},
                DType::q8_0);
  }
  expect_type(IntegerForm::gptq, {.rows = 192, .in = 256, .bits = 3, .symmetric = true},
              DType::q4_0);
  expect_type(IntegerForm::gptq, {.rows = 192, .in = 256, .bits = 2}, DType::q4_1);
}

// Inputs in act order: layers read x's columns group by group.
TEST_F(IntegerMatrixTest, OrderedInputsStayInTheirBits) {
  const auto expect_ordered = [&](IntegerForm form, const PlainIntegers& matrix, DType dtype) {
    const io::Checkpoint checkpoint = folder(form, matrix, {kLayer, "model.layers.1.q_proj"});
    const WeightScope plain(checkpoint,
                            {.device = &cpu_device(), .names = kMatrixNames, .pack = false});
    const nn::OrderedMatrix part =
        (plain.layer(0) / "attn_q").ordered_matrix("weight", {67, 90, matrix.rows}, matrix.in);
    EXPECT_EQ(part.weight.dtype(), dtype);
    ASSERT_TRUE(part.order.defined());
    const std::vector<int32_t> order = part.order.to_host<int32_t>();
    const std::vector<float> values = cast(part.weight, DType::f32).to_host<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t row = 67 + static_cast<int64_t>(i) / matrix.in;
      const int32_t input = order[i % static_cast<size_t>(matrix.in)];
      const int group = matrix.group_of(input);
      const float offset = static_cast<float>(matrix.zero(row, group)) * matrix.scale(row, group);
      ASSERT_NEAR(values[i], matrix.value(row, input), dtype == DType::q4_1 ? offset * 0x1p-11f : 0)
          << row << ", " << input;
    }
    const nn::OrderedMatrix next =
        (plain.layer(1) / "attn_q").ordered_matrix("weight", {0, 32, matrix.rows}, matrix.in);
    EXPECT_EQ(next.order.buffer(), part.order.buffer());
    EXPECT_EQ(plain.figures().most_common(), dtype);
  };
  for (const IntegerForm form : {IntegerForm::gptq, IntegerForm::compressed}) {
    const PlainIntegers matrix{.rows = 200, .in = 256, .group = 64, .order = true};
    expect_ordered(form, matrix, DType::q4_1);
    PlainIntegers other = matrix;
    other.symmetric = true;
    expect_ordered(form, other, DType::q4_0);
    other.bits = 8;
    expect_ordered(form, other, DType::q8_0);
  }
}

TEST_F(IntegerMatrixTest, LayersOfOrderedInputs) {
  const PlainIntegers ordered{
      .rows = 208, .in = 256, .group = 64, .symmetric = true, .order = true};
  PlainIntegers other = ordered;
  other.group = 32;  // another order
  std::vector<RawTensor> all;
  for (const auto& [matrix, name] :
       {std::pair{ordered, kLayer}, {other, "model.layers.1.q_proj"}}) {
    for (RawTensor& tensor : integer_tensors(IntegerForm::gptq, matrix, name)) {
      all.push_back(std::move(tensor));
    }
  }
  write_raw_folder(
      path(), R"({"quant_method":"gptq","bits":4,"group_size":-1,"dynamic":{"+:.*":{}}})", all);
  const io::Checkpoint checkpoint = io::Checkpoint::open(path());
  for (const bool pack : {false, true}) {
    const WeightScope root(checkpoint,
                           {.device = &cpu_device(), .names = kMatrixNames, .pack = pack});
    const nn::LinearShape shape{.in = ordered.in, .out = ordered.rows, .adapted = true};
    const nn::Linear a(root.layer(0) / "attn_q", shape), b(root.layer(1) / "attn_q", shape);
    const Tensor x =
        device_tensor(random_values(static_cast<size_t>(2 * ordered.in), 3), {2, ordered.in});
    const auto expect = [&](const Tensor& y, const PlainIntegers& matrix) {
      expect_sums(y.to_host<float>(), x.to_host<float>(), matrix);
    };
    expect(a(x), ordered);
    expect(a.in_f32(x, {}), ordered);
    expect(a.onto(zeros({2, ordered.rows}, DType::f32, cpu_device()), x), ordered);
    const std::array twice{&a, &a}, mixed{&a, &b};
    expect(nn::linear_many(x, twice)[1], ordered);
    expect(nn::linear_many(x, mixed)[0], ordered);
    expect(nn::linear_many(x, mixed)[1], other);
    nn::Residual residual(zeros({2, ordered.rows}, DType::f32, cpu_device()));
    residual.add(b, x);
    expect(residual.value(), other);
    const std::vector<float> y = a(x).to_host<float>();
    const std::vector<float> both = nn::gated_linear(GateOp::relu, x, a, a).to_host<float>();
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(both[i], std::max(y[i], 0.0f) * y[i], 1e-4f * (1 + y[i] * y[i])) << i;
    }
  }
}

// Panels of 16 rows: 18 bytes for 32 weights.
TEST_F(IntegerMatrixTest, TakeTheirBytes) {
  const PlainIntegers matrix{.rows = 208, .in = 512, .symmetric = true};
  const io::Checkpoint checkpoint = folder(IntegerForm::gptq, matrix, {kLayer});
  int64_t done = 0, total = 0;
  const WeightScope root(
      checkpoint,
      {.device = &cpu_device(), .names = kMatrixNames, .progress = [&](int64_t bytes, int64_t all) {
         done = bytes;
         total = all;
       }});
  (root.layer(0) / "attn_q").matrix("weight", {0, matrix.rows, matrix.rows}, matrix.in);
  EXPECT_EQ(root.figures().resident_bytes, matrix.rows * matrix.in * 18 / 32);
  EXPECT_EQ(root.figures().parameters, matrix.rows * matrix.in);
  EXPECT_EQ(root.figures().most_common(), DType::q4_0);
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, matrix.rows * matrix.in / 2);
}

TEST_F(IntegerMatrixTest, ExpertsToo) {
  const PlainIntegers matrix{.rows = 80, .in = 128};
  for (const IntegerForm form : kForms) {
    const io::Checkpoint checkpoint = folder(
        form, matrix, {"model.layers.0.experts.0.up_proj", "model.layers.0.experts.1.up_proj"});
    const WeightScope root(checkpoint,
                           {.device = &cpu_device(), .names = kMatrixNames, .pack = false});
    const Tensor experts =
        (root.layer(0) / "ffn_up_exps").experts("weight", {2, matrix.rows, matrix.in});
    EXPECT_EQ(experts.dtype(), DType::q4_1);
    for (int64_t expert = 0; expert < 2; ++expert) {
      expect_elements(experts.slice(Axis{0}, expert, 1).reshape({matrix.rows, matrix.in}), 0,
                      matrix, 0x1p-11f);
    }
  }
}

// Act order, and 8 bits with zeros: 16 bits, in the activations' type.
TEST_F(IntegerMatrixTest, OthersBecomeSixteenBits) {
  for (const PlainIntegers& matrix : {PlainIntegers{.rows = 80, .in = 128, .order = true},
                                      PlainIntegers{.rows = 80, .in = 128, .bits = 8}}) {
    const io::Checkpoint checkpoint =
        folder(IntegerForm::gptq, matrix, {kLayer, "model.embed_tokens"});
    for (const DType activations : {DType::f32, DType::f16, DType::bf16}) {
      const WeightScope root(checkpoint, {.device = &cpu_device(),
                                          .names = kMatrixNames,
                                          .pack = false,
                                          .activations = activations});
      const DType wanted = activations == DType::bf16 ? DType::bf16 : DType::f16;
      const Tensor weight =
          (root.layer(0) / "attn_q").matrix("weight", {9, 40, matrix.rows}, matrix.in);
      const Tensor table = (root / "token_embd").table("weight", {matrix.rows, matrix.in});
      EXPECT_EQ(weight.dtype(), wanted);
      EXPECT_EQ(table.dtype(), wanted);
      const std::vector<float> values = cast(weight, DType::f32).to_host<float>();
      for (size_t i = 0; i < values.size(); ++i) {
        const float exact = matrix.value(9 + static_cast<int64_t>(i) / matrix.in,
                                         static_cast<int64_t>(i) % matrix.in);
        ASSERT_EQ(values[i],
                  wanted == DType::f16 ? to_float(to_f16(exact)) : to_float(to_bf16(exact)));
      }
    }
  }
}

}  // namespace
}  // namespace rbee::test
