// Packed weights against their definition. With 8-bit inputs, the test computes the wanted value
// from the same rounded inputs, so the bound is as tight as float sums allow; a second test bounds
// the effect of the rounding itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/thread_pool.h"
#include "backends/shared/quant_blocks.h"
#include "rbee/ops/linear.h"
#include "tests/linear/rounded_inputs.h"
#include "tests/support/block_types.h"

namespace rbee::harness {
namespace {

// Block types whose kernels round x to 8 bits.
const std::vector<DType> kBlockTypes = test::block_types_but({DType::f8_g128});
constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16};

bool takes_8_bits(DType weight) {
  return is_quantized(weight) && weight != DType::f8_g128;
}

struct Problem {
  DType weight = DType::f32;
  int64_t rows = 1, out = 16, in = 256;
  DType input = DType::f32;
  bool bias = false;
};
std::ostream& operator<<(std::ostream& to, const Problem& p) {
  return to << name(p.weight) << " (" << p.out << ", " << p.in << ") x " << name(p.input) << " ("
            << p.rows << ", " << p.in << ")" << (p.bias ? " + bias" : "");
}

struct Operands {
  Tensor x, weight, bias, packed;
};

Operands make(const Problem& p) {
  uint64_t state = 11;
  Operands o;
  o.x = random_tensor({p.rows, p.in}, p.input, state);
  o.weight = random_tensor({p.out, p.in}, p.weight, state);
  if (p.bias) o.bias = random_tensor({p.out}, p.input, state);
  o.packed = pack_weight(o.weight);
  return o;
}

// y, and for each element the sum of its terms' magnitudes, to which errors are relative.
struct Wanted {
  std::vector<double> y, size;
};

Wanted product(const Problem& p, const std::vector<double>& x, const std::vector<double>& weight,
               const Operands& o) {
  const std::vector<double> bias = p.bias ? values_of(o.bias) : std::vector<double>{};
  Wanted want;
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < p.out; ++c) {
      double sum = p.bias ? bias[static_cast<size_t>(c)] : 0.0, size = std::fabs(sum);
      for (int64_t k = 0; k < p.in; ++k) {
        const double term =
            x[static_cast<size_t>(r * p.in + k)] * weight[static_cast<size_t>(c * p.in + k)];
        sum += term;
        size += std::fabs(term);
      }
      want.y.push_back(sum);
      want.size.push_back(size);
    }
  }
  return want;
}

double unit(DType dtype) {
  if (dtype == DType::f16) return 0x1p-10;
  return dtype == DType::bf16 ? 0x1p-7 : 0x1p-23;
}

// Runs every implementation that accepts the packed weight, and calls see(name, y).
template <typename See>
void run_all(const Problem& p, const Operands& o, See see) {
  const Tensor y = empty({p.rows, p.out}, p.input, cpu_device());
  const LinearPart part{
      .weight = o.packed.view(), .bias = p.bias ? o.bias.view() : View{}, .y = y.view()};
  const LinearArgs args{.x = o.x.view(), .parts = {&part, 1}};
  int taken = 0;
  for (const Impl<LinearArgs>& impl : cpu_device().kernels().linear) {
    if (impl.refuse(args) != nullptr) continue;
    ++taken;
    SCOPED_TRACE(impl.name);
    cpu_device().fill_bytes(y.view().data, 0xff, static_cast<size_t>(y.bytes()), y.stream());
    impl.run(args, y.stream());
    see(std::string_view(impl.name), values_of(y));
  }
  EXPECT_GT(taken, 0) << "no kernel takes packed weights";
}

// The largest error, divided by the allowed one.
double worst_of(const Problem& p, const std::vector<double>& y, const Wanted& want) {
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double allowed = 4e-6 * want.size[i] + unit(p.input) * std::fabs(want.y[i]) + 1e-30;
    const double error = std::fabs(y[i] - want.y[i]);
    worst = std::max(worst, std::isnan(error) ? INFINITY : error / allowed);
  }
  return worst;
}

// How kernels round the operands, by the form in which they multiply. Only bf16 rounds
// weights.
struct Expected {
  Wanted plain, bf16, bf16_x;

  // Dot products of bf16 weights, and tiles of those and of block types; e4m3 codes count as bf16
  // except with one row of x. arm64's matrix products are of bf16 weights only.
  const Wanted& of(std::string_view kernel, const Problem& p) const {
    const bool tiles = kernel == "amx", dots = kernel == "avx512bf16";
    if (tiles && takes_8_bits(p.weight)) return bf16;
    if ((tiles || dots || kernel == "i8mm") && p.weight == DType::bf16) return bf16;
    return dots && p.weight == DType::f8_g128 && p.rows > 1 ? bf16_x : plain;
  }
};

Expected expected(const Problem& p, const Operands& o) {
  std::vector<double> x = values_of(o.x), weight = values_of(o.weight);
  Expected want;
  if (takes_8_bits(p.weight)) round_to_int8(x);
  want.plain = product(p, x, weight, o);
  x = values_of(o.x);
  round_to_bf16(x);
  want.bf16_x = product(p, x, weight, o);
  round_to_bf16(weight);
  want.bf16 = product(p, x, weight, o);
  return want;
}

void expect_exact(const Problem& p, const Operands& o) {
  SCOPED_TRACE(::testing::PrintToString(p));
  ASSERT_NE(o.packed.packing(), 0);
  const Expected want = expected(p, o);
  run_all(p, o, [&](std::string_view name, const std::vector<double>& y) {
    EXPECT_LE(worst_of(p, y, want.of(name, p)), 1.0);
  });
}

void expect_exact(const Problem& p) {
  expect_exact(p, make(p));
}

TEST(PackedLinear, BlockTypesAreExactInRoundedInputs) {
  for (const DType weight : kBlockTypes) {
    const int64_t block = info(weight).block_size;
    for (const int64_t rows : {1, 2, 3, 5, 17, 64, 129}) {
      expect_exact({.weight = weight, .rows = rows, .out = 35, .in = 3 * block});
    }
    expect_exact({.weight = weight, .rows = 1, .out = 1, .in = block});
    expect_exact({.weight = weight, .rows = 7, .out = 16, .in = 2304});
    expect_exact({.weight = weight, .rows = 200, .out = 48, .in = 1280});
  }
}

// 13 rows leave one after a tile of 12; kernels for one row do not compute it.
TEST(PackedLinear, E4m3CodesAreExact) {
  for (const int64_t rows : {1, 2, 3, 5, 13, 17, 64, 129}) {
    expect_exact({.weight = DType::f8_g128, .rows = rows, .out = 35, .in = 384});
  }
  expect_exact({.weight = DType::f8_g128, .rows = 1, .out = 1, .in = 128});
  expect_exact({.weight = DType::f8_g128, .rows = 7, .out = 16, .in = 2304});
  expect_exact({.weight = DType::f8_g128, .rows = 200, .out = 48, .in = 1280});
}

// Each code alone: the products of a row with the unit vectors.
TEST(PackedLinear, EveryE4m3Code) {
  const Problem p{.weight = DType::f8_g128, .rows = 1, .out = 16, .in = 256};
  Operands o = make(p);
  auto* blocks = reinterpret_cast<shared::BlockF8_G128*>(o.weight.view().data);
  for (int64_t i = 0; i < p.out * p.in; ++i) {
    blocks[i / 128].qs[i % 128] = static_cast<uint8_t>(i + i / p.in);
  }
  o.packed = pack_weight(o.weight);
  for (const int64_t rows : {1, 13}) {
    std::vector<float> x(static_cast<size_t>(rows * p.in));
    for (int64_t k = 0; k < p.in; ++k) {
      std::ranges::fill(x, 0.0f);
      for (int64_t r = 0; r < rows; ++r) x[static_cast<size_t>(r * p.in + k)] = 1;
      o.x = from_host<float>(x, {rows, p.in}, cpu_device());
      const Problem unit{.weight = p.weight, .rows = rows, .out = p.out, .in = p.in};
      expect_exact(unit, o);
    }
  }
}

TEST(PackedLinear, FloatTypesAreExact) {
  for (const DType weight : kFloatTypes) {
    for (const int64_t rows : {1, 2, 3, 5, 17, 64, 129}) {
      expect_exact({.weight = weight, .rows = rows, .out = 35, .in = 61});
    }
    expect_exact({.weight = weight, .rows = 1, .out = 1, .in = 1});
    expect_exact({.weight = weight, .rows = 7, .out = 16, .in = 2303});
    expect_exact({.weight = weight, .rows = 100, .out = 48, .in = 1280});
  }
}

TEST(PackedLinear, BiasAndSmallFloatInputs) {
  for (const DType weight : {DType::q4_1, DType::q8_0, DType::f8_g128, DType::f16, DType::bf16}) {
    for (const DType input : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t rows : {1, 6, 33}) {
        expect_exact(
            {.weight = weight, .rows = rows, .out = 37, .in = 128, .input = input, .bias = true});
        expect_exact({.weight = weight,
                      .rows = rows,
                      .out = 32,
                      .in = 1152,
                      .input = input,
                      .bias = rows == 6});
      }
    }
  }
}

// Tiles support every packed type except f32, from 16 rows on.
TEST(PackedLinear, TilesTakeSixteenRows) {
  if (const char* missing = cpu::missing_isa(cpu::Isa::amx)) GTEST_SKIP() << missing;
  std::vector<DType> types = kBlockTypes;
  types.insert(types.end(), std::begin(kFloatTypes), std::end(kFloatTypes));
  for (const DType weight : types) {
    for (const int64_t rows : {15, 16}) {
      const Problem p{.weight = weight, .rows = rows};
      SCOPED_TRACE(::testing::PrintToString(p));
      std::vector<std::string_view> names;
      run_all(p, make(p), [&](std::string_view name, const auto&) { names.push_back(name); });
      const bool tiles = rows == 16 && weight != DType::f32;
      EXPECT_EQ(std::ranges::count(names, "amx"), tiles ? 1 : 0);
    }
  }
}

// Tiles multiply two panels at a time if every thread has enough of them; the last of an odd number
// stands alone and is cut here.
TEST(PackedLinear, ManyPanels) {
  const int64_t out = (8 * cpu::ThreadPool::shared().threads() + 2) * 16 + 3;
  for (const DType weight : {DType::q4_1, DType::q6_k, DType::bf16}) {
    const int64_t in = weight == DType::bf16 ? 1085 : 1280;
    for (const int64_t rows : {16, 17, 32, 33, 55}) {
      const bool bias = rows % 2 == 0;
      expect_exact({.weight = weight, .rows = rows, .out = out, .in = 256, .bias = bias});
    }
    expect_exact({.weight = weight, .rows = 31, .out = out, .in = in, .input = DType::bf16});
    expect_exact({.weight = weight, .rows = 40, .out = out - 3, .in = in});
  }
}

// If whole rows of x do not fit in the cache, several panels take turns with each piece of them;
// the last task has fewer panels, and the last panel fewer rows.
TEST(PackedLinear, PanelsTakeTurnsWithLongRows) {
  const int64_t out = 8 * 10 * 16 * cpu::ThreadPool::shared().threads() - 13;
  for (const DType weight :
       {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_k, DType::f8_g128}) {
    const bool blocks = weight == DType::q8_0 || weight == DType::q4_k || weight == DType::f8_g128;
    const int64_t in = blocks ? 2304 : 2303;
    expect_exact({.weight = weight, .rows = 61, .out = out, .in = in, .bias = true});
    expect_exact({.weight = weight, .rows = 48, .out = 40, .in = in, .input = DType::bf16});
  }
}

// One product of 24 by 11 bits per result, also for an f16 number that has lost low bits.
TEST(PackedLinear, F16AndF32MeetWithEveryBit) {
  uint64_t state = 31;
  const Problem p{.weight = DType::f16, .rows = 20, .in = 1};
  Operands o = make(p);
  for (float& x : std::span(o.x.data<float>(), 20)) x = 1.0f + std::fabs(x) * 0x1.fffffep-2f;
  for (const float scale : {1.0f, 0x1p-12f, 0x1p-20f}) {
    const Tensor values = random_tensor({p.out, p.in}, DType::f32, state);
    for (int64_t c = 0; c < p.out; ++c) {
      o.weight.data<f16>()[c] = to_f16(values.data<float>()[c] * scale);
    }
    o.packed = pack_weight(o.weight);
    const Wanted want = product(p, values_of(o.x), values_of(o.weight), o);
    run_all(p, o, [&](std::string_view name, const std::vector<double>& y) {
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_LE(std::fabs(y[i] - want.y[i]), 0x1p-21 * want.size[i]) << name << ", " << i;
      }
    });
  }
}

// Where a block keeps its quants, and a byte that makes them largest.
struct LargestQuants {
  DType weight;
  uint8_t byte;
  size_t first, count;
};
constexpr LargestQuants kLargestQuants[] = {
    {DType::q4_0, 0xff, 2, 16},    {DType::q4_1, 0xff, 4, 16},    {DType::q5_0, 0xff, 2, 20},
    {DType::q5_1, 0xff, 4, 20},    {DType::q8_0, 0x80, 2, 32},    {DType::q2_k, 0xff, 16, 64},
    {DType::q3_k, 0xff, 0, 96},    {DType::q4_k, 0xff, 16, 128},  {DType::q5_k, 0xff, 16, 160},
    {DType::q6_k, 0xff, 0, 192},   {DType::q8_k, 0x80, 4, 256},   {DType::iq4_nl, 0x00, 2, 16},
    {DType::iq4_xs, 0x00, 8, 128}, {DType::mxfp4, 0x77, 1, 16},   {DType::iq1_s, 0xff, 2, 32},
    {DType::iq1_m, 0xff, 0, 48},   {DType::iq2_xxs, 0xff, 2, 64}, {DType::iq2_xs, 0xff, 2, 64},
    {DType::iq2_s, 0xff, 2, 72},   {DType::iq3_xxs, 0xff, 2, 96}, {DType::iq3_s, 0xff, 2, 104},
    {DType::tq1_0, 0xff, 0, 52},   {DType::tq2_0, 0xff, 0, 64},   {DType::nvfp4, 0x77, 4, 32}};

void expect_exact_at_largest(const LargestQuants& largest, int64_t rows) {
  const Problem p{.weight = largest.weight, .rows = rows, .out = 16, .in = 512};
  Operands o = make(p);
  auto* bytes = static_cast<uint8_t*>(o.weight.view().data);
  const auto block = static_cast<size_t>(info(p.weight).block_bytes);
  for (size_t at = 0; at < static_cast<size_t>(o.weight.bytes()); at += block) {
    std::fill_n(bytes + at + largest.first, largest.count, largest.byte);
  }
  o.packed = pack_weight(o.weight);
  for (int64_t i = 0; i < o.x.numel(); ++i) o.x.data<float>()[i] = i < p.in ? -1.5f : 1.5f;
  expect_exact(p, o);
}

// 16-bit sums of products must not saturate for extreme quants and inputs.
TEST(PackedLinear, LargestQuantsAndInputs) {
  for (const LargestQuants& largest : kLargestQuants) {
    for (const int64_t rows : {6, 20}) expect_exact_at_largest(largest, rows);
  }
}

// Compared with unrounded inputs, the error of 8 bits and of tiles' bf16 is below 1/100 of the
// terms' sum in quadrature.
TEST(PackedLinear, RoundingOfInputsIsSmall) {
  for (const DType weight : kBlockTypes) {
    const Problem p{.weight = weight, .rows = 20, .out = 64, .in = 1024};
    SCOPED_TRACE(::testing::PrintToString(p));
    const Operands o = make(p);
    const Wanted want = product(p, values_of(o.x), values_of(o.weight), o);
    double power = 0;
    for (const double y : want.y) power += y * y;
    run_all(p, o, [&](std::string_view, const std::vector<double>& y) {
      double error = 0;
      for (size_t i = 0; i < y.size(); ++i) error += (y[i] - want.y[i]) * (y[i] - want.y[i]);
      EXPECT_LE(std::sqrt(error / power), 0.01);
    });
  }
}

TEST(PackedLinear, SpecialInputs) {
  for (const DType weight : {DType::q4_0, DType::q8_0, DType::q6_k, DType::f16, DType::f8_g128}) {
    SCOPED_TRACE(name(weight));
    uint64_t state = 5;
    const Tensor w = pack_weight(random_tensor({16, 256}, weight, state));
    for (const int64_t rows : {1, 5, 20}) {
      std::vector<float> values(static_cast<size_t>(rows * 256), 0.0f);
      values[3] = NAN;
      const Tensor x = from_host<float>(values, {rows, 256}, cpu_device());
      const std::vector<float> y = linear(x, w).to_host<float>();
      for (size_t c = 0; c < 16; ++c) EXPECT_TRUE(std::isnan(y[c])) << "column " << c;
      for (size_t i = 16; i < y.size(); ++i) EXPECT_EQ(y[i], 0.0f);
      values[3] = 1e-42f;  // too small as a divisor
      const Tensor tiny = from_host<float>(values, {rows, 256}, cpu_device());
      for (const float value : linear(tiny, w).to_host<float>())
        EXPECT_LE(std::fabs(value), 1e-36f);
    }
  }
}

// Parts of different types share x; each reads it in its own form.
TEST(PackedLinear, PartsOfSeveralTypes) {
  uint64_t state = 21;
  std::vector<LinearWeights> layers;
  std::vector<const LinearWeights*> list;
  const DType types[] = {DType::q4_k, DType::f16, DType::q6_k, DType::bf16, DType::f8_g128};
  for (const DType type : types) {
    layers.push_back({.weight = pack_weight(random_tensor({24, 512}, type, state))});
  }
  list.reserve(layers.size());
  for (const LinearWeights& layer : layers) list.push_back(&layer);
  for (const int64_t rows : {0, 1, 40}) {
    const Tensor x = random_tensor({rows, 512}, DType::f32, state);
    const std::vector<Tensor> together = linear_many(x, list);
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(together[i].to_host<float>(), linear(x, layers[i].weight).to_host<float>())
          << name(types[i]) << ", " << rows << " rows";
    }
  }
}

// Layers with adjacent weights are one product whose results are columns.
TEST(PackedLinear, AdjoiningLayers) {
  uint64_t state = 22;
  const Tensor weights = random_tensor({40, 64}, DType::f16, state);
  const Tensor biases = random_tensor({40}, DType::f32, state);
  for (const bool biased : {false, true}) {
    std::vector<LinearWeights> layers;
    int64_t first = 0;
    for (const int64_t outs : {24, 8, 8}) {
      layers.push_back({.weight = weights.slice(Axis{0}, first, outs),
                        .bias = biased ? biases.slice(Axis{0}, first, outs) : Tensor{},
                        .adjoins = first > 0});
      first += outs;
    }
    const std::vector<const LinearWeights*> list{&layers[0], &layers[1], &layers[2]};
    for (const int64_t rows : {1, 2, 40}) {
      const Tensor x = random_tensor({rows, 64}, DType::f32, state);
      const std::vector<Tensor> together = linear_many(x, list);
      for (size_t i = 0; i < layers.size(); ++i) {
        EXPECT_EQ(together[i].to_host<float>(),
                  linear(x, layers[i].weight, layers[i].bias).to_host<float>())
            << i << ", " << rows << " rows";
        EXPECT_EQ(together[i].contiguous(), rows == 1);
      }
    }
  }
}

}  // namespace
}  // namespace rbee::harness
