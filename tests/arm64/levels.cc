// Kernels of arm64's levels against the portable and the reference ones, without the rest of the
// tree and its libraries: what the test arm64_levels compiles and runs by qemu.
//   levels BEST          the levels up to BEST are there, and their kernels are right
//   levels --run LEVEL   runs a kernel of LEVEL without asking: dies of SIGILL where it is missing
// Exit status: 0 right, 1 wrong, 2 wrong usage.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "backends/api/args_attention.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/linear/linear.h"
#include "backends/cpu/ref/attention.h"
#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/rms_norm.h"
#include "backends/cpu/ref/rope.h"
#include "backends/cpu/simd/simd.h"

namespace rbee::cpu {
namespace {

Stream stream;
bool wrong = false;

View view_of(void* data, DType dtype, std::span<const int64_t> sizes) {
  View view{.data = data, .dtype = dtype, .rank = static_cast<int8_t>(sizes.size())};
  int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.sizes[axis] = sizes[static_cast<size_t>(axis)];
    view.strides[axis] = step;
    step *= view.sizes[axis];
  }
  return view;
}

// Random numbers of a normal distribution, or zeros.
struct Floats {
  explicit Floats(std::vector<int64_t> of_sizes, unsigned seed = 0) : sizes(std::move(of_sizes)) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    numbers.resize(static_cast<size_t>(count));
    if (seed == 0) return;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : numbers) x = normal(random);
  }
  View view() { return view_of(numbers.data(), DType::f32, sizes); }

  std::vector<int64_t> sizes;
  std::vector<float> numbers;
};

// Errors are allowed relative to the largest number.
void expect_near(std::string_view what, const Floats& got, const Floats& wanted, float allowed) {
  float size = 0, worst = 0;
  for (size_t i = 0; i < got.numbers.size(); ++i) {
    const float error = std::fabs(got.numbers[i] - wanted.numbers[i]);
    size = std::fmax(size, std::fabs(wanted.numbers[i]));
    worst = std::isnan(error) ? INFINITY : std::fmax(worst, error);
  }
  const bool right = size > 0 && worst <= allowed * size;
  if (!right) {
    std::printf("%.*s: off by %g of %g\n", static_cast<int>(what.size()), what.data(),
                static_cast<double>(worst), static_cast<double>(size));
  }
  wrong |= !right;
}

// Rows of a weight in random bytes, whose f16, f32 and E8M0 scales are finite.
std::vector<uint8_t> random_bytes(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & 0xbf);
  return bytes;
}

struct Packed {
  Packed(DType dtype, int64_t out, int64_t in) {
    const int64_t row = in / info(dtype).block_size * info(dtype).block_bytes;
    std::vector<uint8_t> plain = random_bytes(out * row, 5);
    View weight = view_of(plain.data(), dtype, std::vector<int64_t>{out, in});
    const PackingPlan plan = plan_packing(weight);
    memory.resize(static_cast<size_t>(plan.bytes) + 64);
    view = weight;
    view.packing = plan.packing;
    const auto first = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
    view.data = reinterpret_cast<void*>(first);
    panels_pack_weight.run({weight, view}, stream);
  }
  std::vector<std::byte> memory;
  View view;
};

// bf16 is rounded where products are of bf16.
float allowed_error(const Impl<LinearArgs>& impl, DType weight) {
  return weight == DType::bf16 && std::string_view(impl.name) == "i8mm" ? 1e-2f : 1e-5f;
}

void check_product(const Impl<LinearArgs>& impl, DType weight, int64_t rows, int64_t in) {
  constexpr int64_t kOut = 35;
  const Packed packed(weight, kOut, in);
  Floats x({rows, in}, 7), y({rows, kOut}), wanted({rows, kOut});
  const LinearPart part{.weight = packed.view, .bias = {}, .y = y.view()};
  const LinearPart plain{.weight = packed.view, .bias = {}, .y = wanted.view()};
  impl.run({.x = x.view(), .parts = {&part, 1}}, stream);
  portable_linear.run({.x = x.view(), .parts = {&plain, 1}}, stream);
  expect_near(std::string(impl.name) + " " + info(weight).name, y, wanted,
              allowed_error(impl, weight));
}

void check_products(const Impl<LinearArgs>& impl) {
  for (int64_t i = 0; i < kDTypeCount; ++i) {
    const auto weight = static_cast<DType>(i);
    const bool floats = weight == DType::f32 || weight == DType::f16 || weight == DType::bf16;
    if (!floats && !is_quantized(weight)) continue;
    for (const int64_t rows : {1, 2, 3, 13}) check_product(impl, weight, rows, 512);
    if (floats) check_product(impl, weight, 3, 35);
  }
}

void check_unary(UnaryOp op, std::string_view name) {
  Floats x({3, 37}, 11), y({3, 37}), wanted({3, 37});
  neon_unary.run({op, x.view(), y.view()}, stream);
  ref_unary.run({op, x.view(), wanted.view()}, stream);
  expect_near(name, y, wanted, 1e-6f);
}

void check_norm() {
  Floats x({5, 300}, 12), weight({300}, 13), y({5, 300}), wanted({5, 300});
  neon_rms_norm.run({x.view(), weight.view(), y.view()}, stream);
  ref_rms_norm.run({x.view(), weight.view(), wanted.view()}, stream);
  expect_near("rms_norm", y, wanted, 1e-6f);
}

void check_attention(bool causal) {
  const std::vector<int64_t> sizes{1, 4, 53, 24};
  Floats q(sizes, 14), k(sizes, 15), v(sizes, 16), y(sizes), wanted(sizes);
  AttentionArgs args{.q = q.view(),
                     .k = k.view(),
                     .v = v.view(),
                     .mask = {},
                     .alibi_slopes = {},
                     .y = y.view(),
                     .scale = 0.2f,
                     .causal = causal};
  neon_attention.run(args, stream);
  args.y = wanted.view();
  ref_attention.run(args, stream);
  expect_near(causal ? "attention, causal" : "attention", y, wanted, 2e-6f);
}

void check_neon() {
  check_unary(UnaryOp::silu, "silu");
  check_unary(UnaryOp::gelu_erf, "gelu_erf");
  check_norm();
  check_attention(false);
  check_attention(true);
}

const Impl<LinearArgs>& linear_of(Isa isa) {
  return isa == Isa::i8mm ? i8mm_linear : isa == Isa::dotprod ? dotprod_linear : neon_linear;
}

int check_levels(Isa best) {
  if (supported_isas().highest() != best) {
    std::printf("the best level is %s, not %s\n", name(supported_isas().highest()).data(),
                name(best).data());
    return 1;
  }
  check_neon();
  int levels = 0;
  for (const Isa isa : {Isa::neon, Isa::dotprod, Isa::i8mm}) {
    if (missing_isa(isa) != nullptr) continue;
    ++levels;
    check_products(linear_of(isa));
  }
  std::printf("%s: %d levels %s\n", name(best).data(), levels, wrong ? "WRONG" : "right");
  return wrong ? 1 : 0;
}

int run_levels(std::span<const char* const> arguments) {
  const bool run = arguments.size() == 2 && std::string_view(arguments[0]) == "--run";
  for (const Isa isa : kIsas) {
    if (arguments.empty() || isa == Isa::portable || arguments.back() != name(isa)) continue;
    if (run) {
      check_product(linear_of(isa), DType::q8_0, 3, 512);
      return wrong ? 1 : 0;
    }
    if (arguments.size() == 1) return check_levels(isa);
  }
  std::fprintf(stderr, "usage: levels [--run] neon|dotprod|i8mm\n");
  return 2;
}

}  // namespace
}  // namespace rbee::cpu

int main(int argc, char** argv) {
  return rbee::cpu::run_levels({argv + 1, static_cast<size_t>(argc - 1)});
}
