// The functions of rbee/ops/experts.h: errors, and packed stacks against single layers.
#include "rbee/ops/experts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "backends/cpu/ref/experts.h"
#include "rbee/ops/elementwise.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_table.h"
#include "tests/support/random_values.h"

namespace rbee::harness {
namespace {

Device& cpu() {
  return *all_devices().front();
}

Tensor tensor(const Shape& shape, DType dtype = DType::f32) {
  return zeros(shape, dtype, cpu());
}

Tensor random_tensor(const Shape& shape, DType dtype, uint64_t& state) {
  Tensor x = empty(shape, dtype, cpu());
  fill_random({static_cast<std::byte*>(x.view().data), static_cast<size_t>(x.bytes())}, dtype, {},
              state);
  return x;
}

TEST(ExpertErrors, Route) {
  const Tensor logits = tensor({3, 8});
  expect_error("route_experts", "logits is f32 (8)", "2 axes",
               [&] { route_experts(tensor({8}), {}); });
  expect_error("route_experts", "logits is f16 (3, 8)", "f32",
               [&] { route_experts(tensor({3, 8}, DType::f16), {}); });
  expect_error("route_experts", "(3, 1025)", "1024", [&] { route_experts(tensor({3, 1025}), {}); });
  expect_error("route_experts", "9 experts are chosen", "8",
               [&] { route_experts(logits, {.chosen = 9}); });
  expect_error("route_experts", "0 experts are chosen", "8",
               [&] { route_experts(logits, {.chosen = 0}); });
  expect_error("route_experts", "3 groups", "8 experts",
               [&] { route_experts(logits, {.groups = 3}); });
  expect_error("route_experts", "5 groups are kept", "4",
               [&] { route_experts(logits, {.groups = 4, .kept_groups = 5}); });
  expect_error("route_experts", "3 experts are chosen", "2",
               [&] { route_experts(logits, {.chosen = 3, .groups = 4}); });
  expect_error("route_experts", "bias is f32 (7)", "wanted (8)",
               [&] { route_experts(logits, {.bias = tensor({7})}); });
}

// Whatever the numbers are, the ids must be valid experts.
TEST(Experts, RouteWithoutNumbers) {
  const float nan = std::nanf("");
  const std::vector<float> logits{nan, nan, nan, nan, 1, nan, 3, INFINITY};
  const Routing routing =
      route_experts(from_host<float>(logits, {2, 4}, cpu()),
                    {.chosen = 2, .score = ExpertScore::sigmoid, .normalise = true});
  EXPECT_EQ(routing.ids.to_host<int32_t>(), (std::vector<int32_t>{0, 1, 3, 2}));
}

TEST(ExpertErrors, Linear) {
  const Tensor x = tensor({3, 32});
  const Tensor ids = tensor({3, 2}, DType::i32);
  const LinearWeights good{tensor({4, 8, 32}), {}};
  const auto run = [&](const Tensor& rows, const Tensor& chosen, const LinearWeights& layer) {
    return [=] {
      const LinearWeights* const one[] = {&layer};
      expert_linear(rows, chosen, one);
    };
  };
  expect_error("expert_linear", "weight is f32 (8, 32)", "3 axes",
               run(x, ids, {tensor({8, 32}), {}}));
  expect_error("expert_linear", "x is f32 (3, 32)", "weight is f32 (4, 8, 31)",
               run(x, ids, {tensor({4, 8, 31}), {}}));
  expect_error("expert_linear", "bias is f32 (8)", "wanted (4, 8)",
               run(x, ids, {good.weight, tensor({8})}));
  expect_error("expert_linear", "ids is f32 (3, 2)", "i32", run(x, tensor({3, 2}), good));
  expect_error("expert_linear", "x is f32 (4, 32)", "each choice", run(tensor({4, 32}), ids, good));
  const std::vector<int32_t> beyond{0, 1, 2, 3, 4, 0};
  expect_error("expert_linear", "expert 4", "0 to 3",
               run(x, from_host<int32_t>(beyond, {3, 2}, cpu()), good));
  const LinearWeights other{tensor({5, 8, 32}), {}};
  expect_error("expert_linear", "weight is f32 (5, 8, 32)", "4 experts", [&] {
    const LinearWeights* const both[] = {&good, &other};
    expert_linear(x, ids, both);
  });
}

TEST(ExpertErrors, SumAndPack) {
  expect_error("expert_sum", "x is f32 (5, 8)", "weights is f32 (3, 2)",
               [&] { expert_sum(tensor({5, 8}), tensor({3, 2})); });
  expect_error("expert_sum", "weights is f16 (3, 2)", "f32",
               [&] { expert_sum(tensor({6, 8}), tensor({3, 2}, DType::f16)); });
  expect_error("pack_experts", "matrix 1 is f32 (4, 9)", "f32 (4, 8)",
               [&] { pack_experts(2, [](int64_t e) { return tensor({4, 8 + e}); }); });
  expect_error("pack_experts", "0 experts", "1024",
               [&] { pack_experts(0, [](int64_t) { return tensor({4, 8}); }); });
}

struct StackCase {
  int64_t tokens, chosen, out, in;
};

// A stack must give the results of each token's experts as separate layers.
void expect_layers(const StackCase& c, DType type) {
  constexpr int64_t kExperts = 5;
  uint64_t state = 5;
  const Tensor x = random_tensor({c.tokens, c.in}, DType::f32, state);
  const Tensor bias = random_tensor({kExperts, c.out}, DType::f32, state);
  std::vector<Tensor> matrices;
  for (int64_t e = 0; e < kExperts; ++e) {
    matrices.push_back(random_tensor({c.out, c.in}, type, state));
  }
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < c.tokens * c.chosen; ++i) ids.push_back(i * 11 % 7 % 5);
  const auto matrix = [&](int64_t e) { return matrices[static_cast<size_t>(e)]; };
  const Tensor id_tensor = from_host<int32_t>(ids, {c.tokens, c.chosen}, cpu());
  for (const ExpertLayout layout : {ExpertLayout::packed, ExpertLayout::plain}) {
    const LinearWeights stack{pack_experts(kExperts, matrix, layout), bias};
    EXPECT_EQ(stack.weight.packing() != 0, layout == ExpertLayout::packed) << name(type);
    const LinearWeights* const layers[] = {&stack};
    const std::vector<float> got = expert_linear(x, id_tensor, layers)[0].to_host<float>();
    for (int64_t i = 0; i < c.tokens * c.chosen; ++i) {
      const int64_t e = ids[static_cast<size_t>(i)];
      const Tensor weight = layout == ExpertLayout::packed ? pack_weight(matrix(e)) : matrix(e);
      const Tensor own = contiguous(bias.slice(Axis{0}, e, 1)).reshape({c.out});
      const std::vector<float> want = linear(x, weight, own).to_host<float>();
      for (int64_t o = 0; o < c.out; ++o) {
        // Kernels of other numbers of rows may add up, or round to bf16, differently.
        const float allowed = type == DType::bf16 ? 0.5f : 2e-3f;
        const auto place = static_cast<size_t>(i / c.chosen * c.out + o);
        ASSERT_NEAR(got[static_cast<size_t>(i * c.out + o)], want[place], allowed)
            << name(type) << " choice " << i << " output " << o;
      }
    }
  }
}

// Every expert and layer has 16 rows or more: with fewer, a CPU with tiles rounds x differently.
TEST(Experts, PackedStackIsItsLayers) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_k,
                           DType::mxfp4, DType::iq4_xs, DType::iq2_s, DType::nvfp4}) {
    expect_layers({.tokens = 41, .chosen = 3, .out = 37, .in = 256}, type);
  }
}

// A row of an id of -1 is zeros, also with a bias; the others are what they are without it.
TEST(Experts, IdsOfNoExpert) {
  uint64_t state = 7;
  const LinearWeights layer{random_tensor({4, 24, 64}, DType::f32, state),
                            random_tensor({4, 24}, DType::f32, state)};
  const LinearWeights* const layers[] = {&layer};
  for (const int64_t tokens : {1, 3, 40}) {
    const Tensor x = random_tensor({tokens, 64}, DType::f32, state);
    std::vector<int32_t> all, some;
    for (int32_t i = 0; i < tokens * 2; ++i) all.push_back(i * 5 % 4);
    for (const int32_t id : all) some.push_back(id == 1 ? -1 : id);
    const auto ids = [&](const std::vector<int32_t>& of) {
      return from_host<int32_t>(of, {tokens, 2}, cpu());
    };
    const std::vector<float> whole = expert_linear(x, ids(all), layers)[0].to_host<float>();
    const Tensor by_ref = affine(tensor({tokens * 2, 24}), 0, 3);
    const Tensor absent = ids(some);
    const ExpertPart part{
        .weight = layer.weight.view(), .bias = layer.bias.view(), .y = by_ref.view()};
    cpu::ref_expert_linear.run({.x = x.view(), .ids = absent.view(), .parts = {&part, 1}},
                               x.stream());
    for (const Tensor& y : {expert_linear(x, absent, layers)[0], by_ref}) {
      const std::vector<float> got = y.to_host<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        const float want = some[i / 24] < 0 ? 0 : whole[i];
        ASSERT_NEAR(got[i], want, 1e-3f) << tokens << " tokens, row " << i / 24;
      }
    }
  }
  const std::vector<int32_t> below{-2, 0};
  expect_error("expert_linear", "expert -2", "0 to 3", [&] {
    expert_linear(tensor({1, 64}), from_host<int32_t>(below, {1, 2}, cpu()), layers);
  });
}

// So large that threads share an expert's rows, which end within a panel.
TEST(Experts, SlicesOfAnExpertAreItsRows) {
  for (const DType type : {DType::f32, DType::f16, DType::q8_0, DType::q4_k, DType::mxfp4}) {
    expect_layers({.tokens = 1, .chosen = 1, .out = 709, .in = 768}, type);
    expect_layers({.tokens = 1, .chosen = 3, .out = 709, .in = 768}, type);
  }
}

}  // namespace
}  // namespace rbee::harness
