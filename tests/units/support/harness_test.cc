// The harness must report wrong implementations: wrong values, unwritten elements, writes into
// gaps, types that double cannot hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/check_case.h"

namespace rbee::harness {
namespace {

Device& cpu() {
  return *all_devices().front();
}

HostArray array(std::vector<double> values) {
  return {.shape = {static_cast<int64_t>(values.size())}, .values = std::move(values)};
}

bool close(double got, double want, const Tolerance& allowed) {
  return compare_values(array({got}), array({want}), allowed).ok;
}

TEST(CompareValues, ExactMeansBits) {
  EXPECT_TRUE(close(1, 1, {}));
  EXPECT_FALSE(close(1, std::nextafter(1, 2), {}));
  EXPECT_FALSE(close(0.0, -0.0, {}));
  EXPECT_TRUE(close(NAN, -NAN, {}));
  EXPECT_FALSE(close(NAN, 0, {}));
}

TEST(CompareValues, ToleranceIsRelativeAbsoluteAndOfTheLargest) {
  EXPECT_TRUE(close(101, 100, {.relative = 0.01}));
  EXPECT_FALSE(close(101.1, 100, {.relative = 0.01}));
  EXPECT_TRUE(close(0.5, 0, {.absolute = 0.5}));
  EXPECT_FALSE(close(INFINITY, 1e30, {.relative = 0.5, .of_largest = 0.5}));
  EXPECT_FALSE(close(1e30, INFINITY, {.relative = 0.5, .of_largest = 0.5}));
  EXPECT_FALSE(close(-INFINITY, INFINITY, {.relative = 0.5}));
  const Tolerance of_largest = {.of_largest = 0.01};
  EXPECT_TRUE(compare_values(array({0.9, 100}), array({0, 100}), of_largest).ok);
  const Comparison worse = compare_values(array({100, 1.1}), array({100, 0}), of_largest);
  EXPECT_FALSE(worse.ok);
  EXPECT_EQ(worse.first_failure, "element 1: got 1.1, want 0 (allowed error 1)");
  EXPECT_DOUBLE_EQ(worse.worst_absolute, 1.1);
  EXPECT_FALSE(compare_values(array({1}), array({1, 2}), {.relative = 1}).ok);
}

// Products of rows of 256 random numbers in [-2, 2), 24 by 40 of them, as a kernel with results
// rounded to a type computes them, with or without a fault.
class PlantedFaults : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 24, kColumns = 40, kTerms = 256;

  PlantedFaults() : x_(random(kRows, 1)), w_(random(kColumns, 2)) {}

  static std::vector<double> random(int64_t rows, uint64_t seed) {
    std::vector<double> out(static_cast<size_t>(rows * kTerms));
    uint64_t state = seed;  // Knuth's MMIX generator
    for (double& value : out) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      value = static_cast<double>(state >> 32) * 0x1p-30 - 2;
    }
    return out;
  }
  // Rounds to the nearest number with this many significant bits.
  static double rounded(double value, int bits) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
  }
  // Rounds row by row in blocks of 32, in steps of 1/127 of the block's largest number.
  static std::vector<double> in_8_bits(std::vector<double> values) {
    for (size_t first = 0; first < values.size(); first += 32) {
      double largest = 0;
      for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[first + i]));
      const double step = largest / 127;
      for (size_t i = 0; i < 32; ++i) {
        values[first + i] = std::nearbyint(values[first + i] / step) * step;
      }
    }
    return values;
  }
  static HostArray products(const std::vector<double>& x, const std::vector<double>& w, int bits) {
    HostArray out{.shape = {kRows, kColumns}, .values = {}};
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        double sum = 0;
        for (int64_t i = 0; i < kTerms; ++i) {
          sum += x[static_cast<size_t>(row * kTerms + i)] *
                 w[static_cast<size_t>(column * kTerms + i)];
        }
        out.values.push_back(rounded(sum, bits));
      }
    }
    return out;
  }

  // Faults of results that are otherwise right.
  static void expect_found_by(const Tolerance& allowed, const HostArray& want,
                              const HostArray& right, int bits) {
    HostArray scaled = right;
    for (double& value : scaled.values) value = rounded(value * 1.01, bits);
    EXPECT_FALSE(compare_values(scaled, want, allowed).ok) << "a scale is 1 % too large";
    HostArray swapped = right;
    for (size_t row = 0; row < kRows; ++row) {
      std::swap(swapped.values[row * kColumns + 3], swapped.values[row * kColumns + 4]);
    }
    EXPECT_FALSE(compare_values(swapped, want, allowed).ok) << "two lanes are swapped";
  }

  std::vector<double> x_, w_;
};

TEST_F(PlantedFaults, AreFoundWhereRoundingPassesWithRoom) {
  struct Kind {
    Family family;
    DType dtype;
    int bits;
  };
  for (const auto& [family, dtype, bits] :
       {Kind{Family::product, DType::f32, 24}, Kind{Family::product, DType::f16, 11},
        Kind{Family::product, DType::bf16, 8}, Kind{Family::rounded_product, DType::bf16, 8},
        Kind{Family::quant_product, DType::f32, 24}, Kind{Family::quant_product, DType::f16, 11}}) {
    SCOPED_TRACE(cat("family ", static_cast<int>(family), ' ', dtype));
    const Tolerance allowed = tolerance(family, dtype, DeviceKind::cpu);
    const HostArray want = products(x_, w_, bits);
    const std::vector<double> taken = family == Family::quant_product ? in_8_bits(x_) : x_;
    const HostArray right = products(taken, w_, bits);
    // As two f32 implementations that sum in different orders.
    HostArray other = right;
    for (double& value : other.values) value = rounded(value * (1 + 0x1p-12), bits);
    const Comparison passes = compare_values(dtype == DType::f32 ? right : other, want, allowed);
    EXPECT_TRUE(passes.ok) << passes.first_failure;
    EXPECT_LE(passes.worst_excess, 0.5);

    std::vector<double> dropped = taken;
    for (size_t row = 0; row < kRows; ++row) dropped[row * kTerms + 77] = 0;
    EXPECT_FALSE(compare_values(products(dropped, w_, bits), want, allowed).ok) << "a term is lost";
    expect_found_by(allowed, want, right, bits);
  }
}

// A weight just below f16's normal numbers, which gfx90a's matrix units take for zero, beside the
// largest activation.
TEST_F(PlantedFaults, AreFoundWhereLostSubnormalsPassWithRoom) {
  constexpr int kBits = 24;
  std::vector<double> x = x_, w = w_;
  for (double& value : w) value /= 4;
  x[5] = 2;
  w[5] = 0x1.ffcp-15;
  const HostArray want = products(x, w, kBits);
  const Tolerance of_sums = tolerance(Family::product, DType::f32, DeviceKind::rocm);
  const Tolerance allowed = with_lost_subnormals(of_sums, 2);
  w[5] = 0;
  const HostArray right = products(x, w, kBits);
  EXPECT_GT(compare_values(right, want, of_sums).worst_excess, 0.5);
  EXPECT_LE(compare_values(right, want, allowed).worst_excess, 0.5);

  std::vector<double> dropped = x;
  dropped[77] = 0;
  EXPECT_FALSE(compare_values(products(dropped, w, kBits), want, allowed).ok) << "a term is lost";
  expect_found_by(allowed, want, right, kBits);
}

// Queries in f32 and a softmax's weights are rounded to a type, the result is not.
TEST_F(PlantedFaults, AreFoundWhereRoundedQueriesPassWithRoom) {
  constexpr int64_t kDim = 64, kKeys = 37;
  const auto attention = [&](int bits, double scale, int64_t keys) {
    HostArray out{.shape = {kRows, kColumns}, .values = {}};
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> weights;
      for (int64_t key = 0; key < keys; ++key) {
        double score = 0;
        for (int64_t i = 0; i < kDim; ++i) {
          score += rounded(x_[static_cast<size_t>(row * kTerms + i)], bits) *
                   w_[static_cast<size_t>(key * kTerms + i)];
        }
        weights.push_back(std::exp(score * scale));
      }
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (int64_t column = 0; column < kColumns; ++column) {
        double sum = 0;
        for (int64_t key = 0; key < keys; ++key) {
          sum += rounded(weights[static_cast<size_t>(key)], bits) *
                 w_[static_cast<size_t>(key * kTerms + kDim + column)];
        }
        out.values.push_back(rounded(sum / total, 24));
      }
    }
    return out;
  };
  constexpr double kScale = 1.75 / 8;  // scores have a deviation of 7/3
  const HostArray want = attention(53, kScale, kKeys);
  for (const auto& [dtype, bits] : {std::pair{DType::f16, 11}, std::pair{DType::bf16, 8}}) {
    SCOPED_TRACE(cat(dtype));
    const Tolerance allowed = tolerance(Family::rounded_attention, dtype, DeviceKind::rocm);
    const HostArray right = attention(bits, kScale, kKeys);
    EXPECT_LE(compare_values(right, want, allowed).worst_excess, 0.5);
    EXPECT_FALSE(compare_values(attention(bits, kScale, kKeys - 1), want, allowed).ok)
        << "a key is lost";
    EXPECT_FALSE(compare_values(attention(bits, kScale * 1.05, kKeys), want, allowed).ok)
        << "the scale of scores is 5 % too large";
    expect_found_by(allowed, want, right, 24);
  }
}

// As one token's results for types with a block minimum (q4_1): a sum of the activations dominates
// each result, and so does its error.
TEST_F(PlantedFaults, OneRowsSharedRoundingsPass) {
  constexpr int64_t kOuts = 192;
  std::vector<double> w = random(kOuts, 2);
  for (double& value : w) value += 1.6;
  const Tolerance allowed = tolerance(Family::quant_product, DType::f32, DeviceKind::cpu);
  const auto row_of = [&](const std::vector<double>& x) {
    HostArray out{.shape = {1, kOuts}, .values = {}};
    for (int64_t first = 0; first < kOuts * kTerms; first += kTerms) {
      out.values.push_back(std::inner_product(x.begin(), x.end(), w.begin() + first, 0.0));
    }
    return out;
  };
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> x = random(1, seed * 7919);
    const Comparison passes = compare_values(row_of(in_8_bits(x)), row_of(x), allowed);
    EXPECT_TRUE(passes.ok) << "seed " << seed << ": " << passes.first_failure;
  }
}

TEST(WithinRange, IsThatOfTheType) {
  const HostArray x = array({1e9, -1e9, 1e39, -0.0, 3});
  EXPECT_EQ(within_range(x, DType::f16).values,
            (std::vector<double>{INFINITY, -INFINITY, INFINITY, -0.0, 3.0}));
  EXPECT_EQ(within_range(x, DType::f8e4m3)[0], 448);
  EXPECT_EQ(within_range(x, DType::f32)[0], 1e9);
  EXPECT_EQ(within_range(x, DType::bf16)[2], INFINITY);
  EXPECT_FALSE(std::signbit(within_range(x, DType::i32)[3]));
}

// A copy of (2, 3) with gaps, by a kernel that fails at `run`.
Comparison compare_copies(void (*run)(const CopyArgs&, Stream&), DType dtype = DType::f32) {
  static constexpr auto kRight = [](const CopyArgs& args, Stream& stream) {
    for (const Impl<CopyArgs>& impl : cpu().kernels().copy) {
      if (std::string_view(impl.name) == "ref") impl.run(args, stream);
    }
  };
  Scene scenes[] = {Scene(cpu(), 5), Scene(cpu(), 5)};
  for (int i = 0; i < 2; ++i) {
    const View x = scenes[i].input({{2, 3}, Form::transposed}, dtype, {1e18, 9e18});
    const CopyArgs args{.x = x, .y = scenes[i].output({{2, 3}, Form::gaps}, dtype)};
    i == 0 ? kRight(args, cpu().default_stream()) : run(args, cpu().default_stream());
  }
  return compare_outputs(scenes[1].outputs()[0], scenes[0].outputs()[0], {});
}

template <typename T>
void copy_all(const CopyArgs& args) {
  for (int64_t i = 0; i < 6; ++i) {
    const int64_t row = i / 3, col = i % 3;
    args.y.as<T>()[row * args.y.strides[0] + col] =
        args.x.as<T>()[row * args.x.strides[0] + col * args.x.strides[1]];
  }
}

TEST(CompareOutputs, AcceptsARightKernel) {
  const Comparison result =
      compare_copies([](const CopyArgs& args, Stream&) { copy_all<float>(args); });
  EXPECT_TRUE(result.ok) << result.first_failure;
}

TEST(CompareOutputs, SeesAnElementThatIsNotWritten) {
  const Comparison result = compare_copies([](const CopyArgs&, Stream&) {});
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.first_failure.starts_with("element 0")) << result.first_failure;
}

TEST(CompareOutputs, SeesAWriteIntoAGap) {
  const Comparison result = compare_copies([](const CopyArgs& args, Stream&) {
    copy_all<float>(args);
    args.y.as<float>()[3] = 0;
  });
  EXPECT_EQ(result.first_failure, "an element outside of the operand was written");
}

TEST(CompareOutputs, SeesTheLastBitOfABigInteger) {
  const auto off_by_one = [](const CopyArgs& args, Stream&) {
    copy_all<int64_t>(args);
    args.y.as<int64_t>()[1] ^= 1;
  };
  EXPECT_EQ(compare_copies(off_by_one, DType::i64).first_failure, "element 1 differs");
}

TEST(SceneTest, IsTheSameEachTime) {
  Scene a(cpu(), 7), b(cpu(), 7), c(cpu(), 8);
  for (Scene* scene : {&a, &b, &c}) {
    scene->input({{5, 7}, Form::gaps}, DType::f16);
    scene->in_out({{3, 256}}, DType::q4_k);
  }
  EXPECT_EQ(a.inputs()[0].values, b.inputs()[0].values);
  EXPECT_EQ(a.inputs()[1].values, b.inputs()[1].values);
  EXPECT_NE(a.inputs()[0].values, c.inputs()[0].values);
}

TEST(SceneTest, FormsAreViewsOfTheirShape) {
  Scene scene(cpu(), 1);
  const Layout layouts[] = {{{4, 6}},
                            {{4, 6}, Form::gaps},
                            {{4, 6}, Form::transposed},
                            {{4, 6}, Form::step2},
                            {{4, 6}, Form::contiguous, 0b01}};
  const int64_t strides[][2] = {{6, 1}, {9, 1}, {1, 4}, {12, 2}, {0, 1}};
  for (size_t i = 0; i < std::size(layouts); ++i) {
    const View view = scene.input(layouts[i], DType::f32);
    EXPECT_EQ(view.sizes[0], 4);
    EXPECT_EQ(view.sizes[1], 6);
    EXPECT_EQ(view.strides[0], strides[i][0]) << i;
    EXPECT_EQ(view.strides[1], strides[i][1]) << i;
  }
  // Four layouts of 24 elements and one of 6.
  EXPECT_EQ(scene.bytes, (4 * 24 + 6) * 4);
}

TEST(SceneTest, ResetRestoresWhatOutputsHeld) {
  Scene scene(cpu(), 3);
  const View y = scene.in_out({{9}}, DType::f32);
  const std::vector<double> before = scene.inputs()[0].values;
  y.as<float>()[4] = 99;
  EXPECT_NE(read_values(scene.outputs()[0].view).values, before);
  scene.reset();
  EXPECT_EQ(read_values(scene.outputs()[0].view).values, before);
}

}  // namespace
}  // namespace rbee::harness
