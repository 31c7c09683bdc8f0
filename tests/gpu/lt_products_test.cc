// Calls of backends/gpu to cuBLASLt and hipBLASLt, computed by a fake of each: sides, pitches,
// batches and types of every product must be right, or refused before the call.
#include "backends/gpu/ops/lt_products.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <type_traits>

#include "backends/api/kernel_table.h"
#include "backends/gpu/gpu_device.h"
#include "rbee/core/half.h"
#include "tests/gpu/fake_library.h"

namespace rbee::harness {
namespace {

template <typename T>
T number(int value) {
  const auto x = static_cast<float>(value);
  if constexpr (std::is_same_v<T, f16>) return to_f16(x);
  if constexpr (std::is_same_v<T, bf16>) return to_bf16(x);
  if constexpr (std::is_floating_point_v<T>) return x;
}
double number(double x) {
  return x;
}
double number(f16 x) {
  return to_float(x);
}
double number(bf16 x) {
  return to_float(x);
}

// A matrix with batch axes in its own memory, at the places that its strides give. Values are small
// integers, so every sum is exact.
template <typename T>
struct Matrix {
  View view;
  std::vector<T> values;

  Matrix(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t elements)
      : values(static_cast<size_t>(elements)) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = number<T>(static_cast<int>(i * 7 % 11) - 5);
    }
    view = {.data = values.data(), .dtype = kDTypeOf<T>, .rank = static_cast<int8_t>(sizes.size())};
    std::copy(sizes.begin(), sizes.end(), view.sizes);
    std::copy(strides.begin(), strides.end(), view.strides);
  }
  double at(int64_t batch0, int64_t batch1, int64_t row, int64_t column) const {
    return number(values[static_cast<size_t>(batch0 * view.strides[0] + batch1 * view.strides[1] +
                                             row * view.strides[2] + column * view.strides[3])]);
  }
};

template <typename T>
Matrix<T> rows(int64_t batch0, int64_t batch1, int64_t m, int64_t n, int64_t gap = 0) {
  const int64_t pitch = n + gap, each = m * pitch;
  return {{batch0, batch1, m, n}, {batch1 * each, each, pitch, 1}, batch0 * batch1 * each};
}
template <typename T>
Matrix<T> columns(int64_t batch0, int64_t batch1, int64_t m, int64_t n, int64_t gap = 0) {
  const int64_t pitch = m + gap, each = n * pitch;
  return {{batch0, batch1, m, n}, {batch1 * each, each, 1, pitch}, batch0 * batch1 * each};
}

template <typename T>
void expect_product(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& y) {
  for (int64_t i = 0; i < y.view.sizes[0]; ++i) {
    for (int64_t j = 0; j < y.view.sizes[1]; ++j) {
      for (int64_t m = 0; m < y.view.sizes[2]; ++m) {
        for (int64_t n = 0; n < y.view.sizes[3]; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < a.view.sizes[3]; ++k) sum += a.at(i, j, m, k) * b.at(i, j, k, n);
          ASSERT_EQ(y.at(i, j, m, n), sum) << i << ' ' << j << ' ' << m << ' ' << n;
        }
      }
    }
  }
}

class LtProductsTest : public ::testing::TestWithParam<Vendor> {
 protected:
  LtProductsTest() : fake_(GetParam()), driver_(fake_.open()), device_(vendor(), 0) {
    open_fake_products(GetParam());
  }
  static const gpu::LtVendor& lt_vendor() { return lt_vendor_of(GetParam()); }
  static const KernelTable& no_kernels(const gpu::Properties&) {
    static const KernelTable table;
    return table;
  }
  gpu::Vendor vendor() const {
    return {.driver = driver_.get(), .images = {}, .kernels = &no_kernels};
  }

  template <typename T>
  void check(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& y) {
    const MatmulArgs args{.a = a.view, .b = b.view, .y = y.view};
    ASSERT_STREQ(gpu::refuse_lt_matmul(library(), args), nullptr);
    gpu::run_lt_matmul(library(), args, device_.default_stream());
    expect_product(a, b, y);
  }
  gpu::LtLibrary& library() {
    if (!library_) library_.emplace(lt_vendor());
    return *library_;
  }

  FakeLibrary fake_;
  std::unique_ptr<gpu::Driver> driver_;
  gpu::GpuDevice device_;
  std::optional<gpu::LtLibrary> library_;
};

TEST_P(LtProductsTest, TakesRowsAndColumnsWithGaps) {
  check<float>(rows<float>(1, 1, 3, 5), rows<float>(1, 1, 5, 4), rows<float>(1, 1, 3, 4));
  check<float>(rows<float>(1, 1, 3, 5, 2), columns<float>(1, 1, 5, 4), rows<float>(1, 1, 3, 4, 1));
  check<float>(columns<float>(1, 1, 3, 5, 1), rows<float>(1, 1, 5, 4, 3), rows<float>(1, 1, 3, 4));
  check<float>(columns<float>(1, 1, 6, 2), columns<float>(1, 1, 2, 7, 2), rows<float>(1, 1, 6, 7));
  // Axes of one element may have any stride.
  check<float>(rows<float>(1, 1, 1, 5), rows<float>(1, 1, 5, 1, 3), rows<float>(1, 1, 1, 1));
  check<float>(columns<float>(1, 1, 4, 1, 3), rows<float>(1, 1, 1, 6), rows<float>(1, 1, 4, 6));
}

TEST_P(LtProductsTest, TakesEveryType) {
  check<double>(rows<double>(1, 1, 3, 5), columns<double>(1, 1, 5, 4), rows<double>(1, 1, 3, 4));
  check<f16>(rows<f16>(1, 1, 3, 5), rows<f16>(1, 1, 5, 4), rows<f16>(1, 1, 3, 4));
  check<bf16>(rows<bf16>(1, 1, 3, 5), rows<bf16>(1, 1, 5, 4), rows<bf16>(1, 1, 3, 4));
}

TEST_P(LtProductsTest, TakesBatchesThatLieEvenly) {
  check<float>(rows<float>(2, 3, 3, 5), rows<float>(2, 3, 5, 4), rows<float>(2, 3, 3, 4));
  Matrix<float> shared = columns<float>(1, 1, 5, 4);  // one matrix for the whole batch
  shared.view.sizes[0] = 2;
  shared.view.sizes[1] = 3;
  shared.view.strides[0] = shared.view.strides[1] = 0;
  check<float>(rows<float>(2, 3, 3, 5), shared, rows<float>(2, 3, 3, 4));
}

TEST_P(LtProductsTest, RefusesWhatLibrariesCannotSay) {
  const Matrix<float> b = rows<float>(2, 3, 5, 4), y = rows<float>(2, 3, 3, 4);
  Matrix<float> a = rows<float>(2, 3, 3, 5);
  a.view.strides[0] = 0;  // shared along one axis of the batch only
  EXPECT_STREQ(gpu::refuse_lt_matmul(library(), {.a = a.view, .b = b.view, .y = y.view}),
               "matrices of the batch do not lie evenly");
  a = rows<float>(2, 3, 3, 10);
  a.view.sizes[3] = 5;
  a.view.strides[3] = 2;
  EXPECT_STREQ(gpu::refuse_lt_matmul(library(), {.a = a.view, .b = b.view, .y = y.view}),
               "a matrix has no unit stride");
  EXPECT_STREQ(gpu::refuse_lt_matmul(library(), {.a = rows<float>(1, 1, 3, 5).view,
                                                 .b = rows<float>(1, 1, 5, 4).view,
                                                 .y = columns<float>(1, 1, 3, 4).view}),
               "writes rows only");
}

TEST_P(LtProductsTest, ComputesLinearLayersWithBiasAndResidual) {
  constexpr int64_t kRows = 9, kDepth = 6;
  const Matrix<float> x = rows<float>(1, 1, kRows, kDepth);
  View flat = x.view;
  flat.rank = 2;
  flat.sizes[0] = kRows;
  flat.sizes[1] = kDepth;
  flat.strides[0] = kDepth;
  flat.strides[1] = 1;
  for (const int kind : {0, 1, 2, 3, 0}) {
    const bool with_bias = kind % 2 == 1, with_residual = kind >= 2;
    std::vector<float> weight(5 * kDepth), bias{1, -2, 3, -4, 5}, y(kRows * 5, -1.0f);
    std::vector<float> residual(kRows * 5);
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < residual.size(); ++i) residual[i] = static_cast<float>(i % 13) - 6;
    LinearPart part{.weight = flat, .bias = {}, .y = flat};
    part.weight.data = weight.data();
    part.weight.sizes[0] = 5;
    part.y.data = y.data();
    part.y.sizes[1] = part.y.strides[0] = 5;
    if (with_bias) {
      part.bias = {.data = bias.data(), .rank = 1, .sizes = {5}, .strides = {1}};
    }
    Stream& stream = device_.default_stream();
    if (with_residual) {
      View added = part.y;
      added.data = residual.data();
      const FusedLinearArgs args{
          .x = flat, .norm_weight = {}, .residual = added, .parts = {&part, 1}};
      ASSERT_STREQ(gpu::refuse_lt_fused_linear(library(), args), nullptr);
      gpu::run_lt_fused_linear(library(), args, stream);
    } else {
      const LinearArgs args{.x = flat, .parts = {&part, 1}};
      ASSERT_STREQ(gpu::refuse_lt_linear(library(), args), nullptr);
      gpu::run_lt_linear(library(), args, stream);
    }
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t out = 0; out < 5; ++out) {
        double sum = with_bias ? bias[static_cast<size_t>(out)] : 0.0;
        if (with_residual) sum += residual[static_cast<size_t>(row * 5 + out)];
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += x.at(0, 0, row, k) * weight[static_cast<size_t>(out * kDepth + k)];
        }
        ASSERT_EQ(y[static_cast<size_t>(row * 5 + out)], sum) << row << ' ' << out;
      }
    }
  }
}

// x is not rounded to the weight's type, and an x cut to 16 bits keeps f32 products.
TEST_P(LtProductsTest, TakesOperandsOfOneTypeAndWritesF32) {
  constexpr int64_t kRows = 9, kDepth = 8, kOuts = 4;
  const auto flat = [](View view, int64_t lines) {
    view.rank = 2;
    view.sizes[0] = lines;
    view.sizes[1] = view.strides[0] = view.sizes[3];
    view.strides[1] = 1;
    return view;
  };
  const Matrix<f16> x = rows<f16>(1, 1, kRows, kDepth), weight = rows<f16>(1, 1, kOuts, kDepth);
  const Matrix<float> wide = rows<float>(1, 1, kRows, kDepth);
  const Matrix<float> y = rows<float>(1, 1, kRows, kOuts);
  const LinearPart part{.weight = flat(weight.view, kOuts), .bias = {}, .y = flat(y.view, kRows)};
  EXPECT_STREQ(gpu::refuse_lt_linear(library(), {.x = flat(wide.view, kRows), .parts = {&part, 1}}),
               "takes operands of one type");
  const LinearArgs args{.x = flat(x.view, kRows), .parts = {&part, 1}};
  ASSERT_STREQ(gpu::refuse_lt_linear(library(), args), nullptr);
  gpu::run_lt_linear(library(), args, device_.default_stream());
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t out = 0; out < kOuts; ++out) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) sum += x.at(0, 0, row, k) * weight.at(0, 0, out, k);
      ASSERT_EQ(y.at(0, 0, row, out), sum) << row << ' ' << out;
    }
  }
}

TEST_P(LtProductsTest, SaysThatTheLibraryIsMissing) {
  setenv(lt_vendor().override_variable, "/nowhere/liblt.so", 1);
  const gpu::LtLibrary missing(lt_vendor());
  ASSERT_NE(missing.refusal(), nullptr);
  EXPECT_NE(std::string(missing.refusal()).find("/nowhere/liblt.so"), std::string::npos);
  EXPECT_EQ(gpu::refuse_lt_linear(missing, {}), missing.refusal());
  EXPECT_EQ(gpu::refuse_lt_matmul(missing, {}), missing.refusal());
}

INSTANTIATE_TEST_SUITE_P(Vendors, LtProductsTest, ::testing::ValuesIn(built_vendors()),
                         [](const auto& p) { return p.param == Vendor::cuda ? "cuda" : "rocm"; });

}  // namespace
}  // namespace rbee::harness
