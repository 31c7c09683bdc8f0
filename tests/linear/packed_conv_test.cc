// Convolutions with q8_0 packed weights against their definition: the test computes the wanted
// value in double from the same rounded operands, so the bound is as tight as float sums allow. A
// second test bounds the rounding itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/cpu_features.h"
#include "rbee/ops/image.h"
#include "tests/linear/rounded_inputs.h"

namespace rbee::harness {
namespace {

struct Problem {
  int64_t batch = 1, height = 6, width = 7, in = 64, out = 35, kernel = 3, stride = 1;
  bool upsample = false, bias = false;
  DType input = DType::f32;

  int64_t scale() const { return upsample ? 2 : 1; }
  int64_t padding() const { return kernel / 2; }
  int64_t out_size(int64_t size) const {
    return (size * scale() + 2 * padding() - kernel) / stride + 1;
  }
};
std::ostream& operator<<(std::ostream& to, const Problem& p) {
  return to << name(p.input) << ' ' << p.batch << "x" << p.height << "x" << p.width << ' ' << p.in
            << "->" << p.out << ' ' << p.kernel << "x" << p.kernel << " s" << p.stride
            << (p.upsample ? " upsample" : "") << (p.bias ? " bias" : "");
}

struct Operands {
  Tensor x, weight, bias, packed;
};

Operands make(const Problem& p) {
  uint64_t state = 17;
  Operands o;
  o.x = random_tensor({p.batch, p.height, p.width, p.in}, p.input, state);
  o.weight = random_tensor({p.out, p.kernel, p.kernel, p.in}, DType::q8_0, state);
  if (p.bias) o.bias = random_tensor({p.out}, p.input, state);
  o.packed = pack_channels_last(o.weight);
  return o;
}

// y, and for each element the sum of its terms' magnitudes, to which errors are relative.
struct Wanted {
  std::vector<double> y, size;
};

// The pixel under tap (r, s) of output (i, j); -1 in the padding.
int64_t pixel_under(const Problem& p, int64_t i, int64_t j, int64_t tap) {
  const int64_t row = i * p.stride + tap / p.kernel - p.padding();
  const int64_t column = j * p.stride + tap % p.kernel - p.padding();
  if (row < 0 || column < 0 || row >= p.height * p.scale() || column >= p.width * p.scale()) {
    return -1;
  }
  return row / p.scale() * p.width + column / p.scale();
}

Wanted convolution(const Problem& p, std::span<const double> x, std::span<const double> weight,
                   const Operands& o) {
  const std::vector<double> bias = p.bias ? values_of(o.bias) : std::vector<double>{};
  const int64_t height = p.out_size(p.height), width = p.out_size(p.width);
  const int64_t taps = p.kernel * p.kernel;
  Wanted want;
  for (int64_t at = 0; at < p.batch * height * width * p.out; ++at) {
    const int64_t c = at % p.out, pixel = at / p.out;
    const int64_t n = pixel / (height * width);
    double sum = p.bias ? bias[static_cast<size_t>(c)] : 0.0, size = std::fabs(sum);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t seen = pixel_under(p, pixel / width % height, pixel % width, tap);
      if (seen < 0) continue;
      const double* values = x.data() + (n * p.height * p.width + seen) * p.in;
      const double* filter = weight.data() + (c * taps + tap) * p.in;
      for (int64_t k = 0; k < p.in; ++k) {
        sum += values[k] * filter[k];
        size += std::fabs(values[k] * filter[k]);
      }
    }
    want.y.push_back(sum);
    want.size.push_back(size);
  }
  return want;
}

// Runs every implementation that accepts the packed weight, and calls see(name, y).
template <typename See>
void run_all(const Problem& p, const Operands& o, See see) {
  const Tensor y =
      empty({p.batch, p.out_size(p.height), p.out_size(p.width), p.out}, p.input, cpu_device());
  const ImageConvArgs args{.x = o.x.view(),
                           .weight = o.packed.view(),
                           .bias = p.bias ? o.bias.view() : View{},
                           .channel_add = {},
                           .residual = {},
                           .y = y.view(),
                           .stride = p.stride,
                           .pad_top = p.padding(),
                           .pad_left = p.padding(),
                           .upsample = p.upsample};
  int taken = 0;
  for (const Impl<ImageConvArgs>& impl : cpu_device().kernels().image_conv) {
    if (impl.refuse(args) != nullptr) continue;
    ++taken;
    SCOPED_TRACE(impl.name);
    cpu_device().fill_bytes(y.view().data, 0xff, static_cast<size_t>(y.bytes()), y.stream());
    impl.run(args, y.stream());
    see(std::string_view(impl.name), values_of(y));
  }
  EXPECT_GT(taken, 0) << "no kernel takes packed weights";
}

double unit(DType dtype) {
  if (dtype == DType::f16) return 0x1p-10;
  return dtype == DType::bf16 ? 0x1p-7 : 0x1p-23;
}

void expect_exact(const Problem& p) {
  SCOPED_TRACE(::testing::PrintToString(p));
  const Operands o = make(p);
  ASSERT_NE(o.packed.packing(), 0);
  std::vector<double> x = values_of(o.x), weight = values_of(o.weight);
  round_to_int8(x);
  const Wanted int8 = convolution(p, x, weight, o);
  x = values_of(o.x);
  round_to_bf16(x);
  round_to_bf16(weight);
  const Wanted bf16 = convolution(p, x, weight, o);
  run_all(p, o, [&](std::string_view name, const std::vector<double>& y) {
    const Wanted& want = name == "amx" ? bf16 : int8;
    for (size_t i = 0; i < y.size(); ++i) {
      const double allowed = 4e-6 * want.size[i] + unit(p.input) * std::fabs(want.y[i]) + 1e-30;
      ASSERT_LE(std::fabs(y[i] - want.y[i]), allowed) << "element " << i;
    }
  });
}

TEST(PackedConv, IsExactInRoundedOperands) {
  expect_exact({});
  expect_exact({.batch = 2, .height = 5, .width = 3, .in = 32, .out = 16, .bias = true});
  expect_exact({.kernel = 1, .bias = true});  // the image itself is the matrix
  expect_exact({.batch = 2, .kernel = 1, .stride = 2});
  expect_exact({.height = 9, .width = 8, .in = 96, .stride = 2});
  expect_exact({.height = 4, .width = 5, .upsample = true});
  expect_exact({.height = 1, .width = 1, .in = 32, .out = 1});
}

TEST(PackedConv, TakesSmallFloats) {
  for (const DType input : {DType::f16, DType::bf16}) {
    expect_exact({.batch = 2, .bias = true, .input = input});
    expect_exact({.kernel = 1, .input = input});
  }
}

// More inputs than one gather, more pixels than a block, more outputs than a task.
TEST(PackedConv, ManyInputsPixelsAndOutputs) {
  expect_exact({.height = 4, .width = 4, .in = 160, .out = 24});
  expect_exact({.height = 13, .width = 17, .in = 32, .out = 40});
  expect_exact({.height = 3, .width = 3, .in = 32, .out = 700});
  expect_exact({.height = 14, .width = 9, .in = 1312, .out = 20, .kernel = 1});
}

// Compared with unrounded inputs, the error is below 1/100 of the results, in quadrature.
TEST(PackedConv, RoundingOfInputsIsSmall) {
  const Problem p{.in = 128, .out = 64};
  const Operands o = make(p);
  const Wanted want = convolution(p, values_of(o.x), values_of(o.weight), o);
  double power = 0;
  for (const double y : want.y) power += y * y;
  run_all(p, o, [&](std::string_view, const std::vector<double>& y) {
    double error = 0;
    for (size_t i = 0; i < y.size(); ++i) error += (y[i] - want.y[i]) * (y[i] - want.y[i]);
    EXPECT_LE(std::sqrt(error / power), 0.01);
  });
}

// A pixel that is NaN reaches only the outputs that depend on it.
TEST(PackedConv, NanStaysWhereItIsSeen) {
  const Problem p{.height = 5, .width = 5, .in = 32, .out = 16};
  Operands o = make(p);
  for (float& value : std::span(o.x.data<float>(), static_cast<size_t>(o.x.numel()))) value = 0.5f;
  o.x.data<float>()[7] = NAN;  // pixel (0, 0)
  run_all(p, o, [&](std::string_view, const std::vector<double>& y) {
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t pixel = i / 16;
      const bool sees = pixel / 5 <= 1 && pixel % 5 <= 1;
      EXPECT_EQ(std::isnan(y[i]), sees) << "pixel " << pixel;
    }
  });
}

// Blocks of the weight need groups of 32 channels: other counts have no implementation.
TEST(PackedConv, RefusesOtherNumbersOfChannels) {
  uint64_t state = 3;
  const Tensor x = random_tensor({1, 4, 4, 48}, DType::f32, state);
  const Tensor weight = random_tensor({16, 2, 2, 48}, DType::f32, state);
  const Tensor packed = pack_channels_last(weight);
  View as_blocks = packed.view();
  as_blocks.dtype = DType::q8_0;
  const Tensor y = empty({1, 3, 3, 16}, DType::f32, cpu_device());
  const ImageConvArgs args{.x = x.view(),
                           .weight = as_blocks,
                           .bias = {},
                           .channel_add = {},
                           .residual = {},
                           .y = y.view()};
  for (const Impl<ImageConvArgs>& impl : cpu_device().kernels().image_conv) {
    EXPECT_NE(impl.refuse(args), nullptr) << impl.name;
  }
}

}  // namespace
}  // namespace rbee::harness
