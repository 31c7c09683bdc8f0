// Mixtures of experts: choosing them, their linear layers, and their sum.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/block_types.h"
#include "tests/support/dot.h"
#include "tests/support/op_table.h"
#include "tests/support/packed.h"

namespace rbee::harness {
namespace {

struct RouteCase {
  int64_t tokens = 1, experts = 8, chosen = 2;
  ExpertScore score = ExpertScore::softmax;
  GroupScore group_score = GroupScore::best;
  int32_t groups = 1, kept = 1;
  bool normalise = false, bias = false;
  float scale = 1;
  Values values = {-6, 6};
};

std::vector<RouteCase> route_cases() {
  using enum ExpertScore;
  using enum GroupScore;
  return {
      {},
      {.tokens = 0},
      {.tokens = 3, .experts = 1, .chosen = 1},
      {.tokens = 5, .experts = 7, .chosen = 7, .normalise = true},
      {.tokens = 3, .experts = 60, .chosen = 4},
      {.tokens = 33, .experts = 128, .chosen = 8, .normalise = true},
      {.tokens = 2, .experts = 1024, .chosen = 10, .normalise = true, .scale = 2.5f},
      {.tokens = 4, .experts = 33, .chosen = 3, .score = sigmoid, .bias = true},
      {.tokens = 4, .experts = 160, .chosen = 6, .groups = 8, .kept = 3, .scale = 16},
      {.tokens = 9,
       .experts = 256,
       .chosen = 8,
       .score = sigmoid,
       .group_score = two_best,
       .groups = 8,
       .kept = 4,
       .normalise = true,
       .bias = true,
       .scale = 2.5f},
      {.tokens = 3, .experts = 6, .chosen = 2, .group_score = two_best, .groups = 6, .kept = 2},
  };
}

// The indices of the `count` largest values; of equal ones, the lower index first.
std::vector<int64_t> largest(const std::vector<double>& x, int64_t count) {
  std::vector<int64_t> out;
  std::vector<bool> taken(x.size());
  for (int64_t n = 0; n < count; ++n) {
    size_t best = x.size();
    for (size_t i = 0; i < x.size(); ++i) {
      if (!taken[i] && (best == x.size() || x[i] > x[best])) best = i;
    }
    taken[best] = true;
    out.push_back(static_cast<int64_t>(best));
  }
  return out;
}

// The values by which experts are chosen: one token's scores, without the worse groups.
std::vector<double> choice_of(const RouteCase& c, const std::vector<double>& scores,
                              const HostArray* bias) {
  std::vector<double> choice = scores;
  for (size_t e = 0; e < choice.size(); ++e) {
    if (bias != nullptr) choice[e] += (*bias)[static_cast<int64_t>(e)];
  }
  if (c.groups == 1) return choice;
  const size_t size = choice.size() / static_cast<size_t>(c.groups);
  std::vector<double> groups;
  for (size_t g = 0; g < static_cast<size_t>(c.groups); ++g) {
    const std::vector<double> members(choice.begin() + static_cast<ptrdiff_t>(g * size),
                                      choice.begin() + static_cast<ptrdiff_t>((g + 1) * size));
    const bool two = c.group_score == GroupScore::two_best && size > 1;
    double score = 0;
    for (const int64_t i : largest(members, two ? 2 : 1)) score += members[static_cast<size_t>(i)];
    groups.push_back(score);
  }
  const std::vector<int64_t> kept = largest(groups, c.kept);
  const std::set<int64_t> in(kept.begin(), kept.end());
  for (size_t e = 0; e < choice.size(); ++e) {
    if (!in.contains(static_cast<int64_t>(e / size))) choice[e] = -INFINITY;
  }
  return choice;
}

std::vector<HostArray> route_formula(const RouteCase& c, const std::vector<HostArray>& inputs) {
  HostArray ids = host_zeros({c.tokens, c.chosen}), weights = host_zeros({c.tokens, c.chosen});
  for (int64_t t = 0; t < c.tokens; ++t) {
    std::vector<double> scores;
    double sum = 0;
    for (int64_t e = 0; e < c.experts; ++e) {
      const double x = std::exp(inputs[0][t * c.experts + e]);
      scores.push_back(c.score == ExpertScore::sigmoid ? x / (1 + x) : x);
      sum += x;
    }
    for (double& x : scores) x /= c.score == ExpertScore::sigmoid ? 1 : sum;
    const auto chosen = largest(choice_of(c, scores, c.bias ? &inputs[1] : nullptr), c.chosen);
    double total = 0;
    for (const int64_t e : chosen) total += scores[static_cast<size_t>(e)];
    for (int64_t j = 0; j < c.chosen; ++j) {
      const int64_t e = chosen[static_cast<size_t>(j)];
      ids[t * c.chosen + j] = static_cast<double>(e);
      weights[t * c.chosen + j] =
          scores[static_cast<size_t>(e)] * static_cast<double>(c.scale) / (c.normalise ? total : 1);
    }
  }
  return {ids, weights};
}

OpTable route_table() {
  OpTable out("route_experts");
  for (const RouteCase& c : route_cases()) {
    const bool sigmoid = c.score == ExpertScore::sigmoid;
    out.add<RouteExpertsArgs>(
        &KernelTable::route_experts,
        {.name = cat('(', c.tokens, ", ", c.experts, ") best ", c.chosen,
                     sigmoid ? " sigmoid" : " softmax", c.bias ? " bias" : "",
                     c.groups > 1 ? cat(" of ", c.kept, '/', c.groups, " groups") : ""),
         .family = Family::function,
         .build =
             [c](Scene& scene) {
               RouteExpertsArgs args{};
               args.logits = scene.input({{c.tokens, c.experts}}, DType::f32, c.values);
               if (c.bias) args.bias = scene.input({{c.experts}}, DType::f32, {-0.5, 0.5});
               args.ids = scene.output({{c.tokens, c.chosen}}, DType::i32);
               args.weights = scene.output({{c.tokens, c.chosen}}, DType::f32);
               args.score = c.score;
               args.group_score = c.group_score;
               args.groups = c.groups;
               args.kept_groups = c.kept;
               args.normalise = c.normalise;
               args.scale = c.scale;
               return args;
             },
         .formula = [c](const std::vector<HostArray>& in) { return route_formula(c, in); }});
  }
  return out;
}

struct LinearCase {
  int64_t tokens = 1, chosen = 2, experts = 4, in = 64;
  std::vector<int64_t> outs = {24};  // one part each
  DType weight = DType::f32;
  DType dtype = DType::f32;  // of x, bias and y
  bool bias = false;
  bool row_each = false;  // x has a row for each choice
  bool plain = false;     // a block type that is not packed
  bool big = false;
};

void add_linear(DType weight, DType dtype, std::vector<LinearCase>& out) {
  const int64_t block = info(weight).block_size;
  const auto add = [&](LinearCase c) {
    c.weight = weight;
    c.dtype = dtype;
    out.push_back(std::move(c));
  };
  add({.in = block * 2, .outs = {35}});
  add({.chosen = 3, .in = 1280, .outs = {24, 9}});
  add({.tokens = 2, .in = 768, .outs = {17}, .bias = true, .row_each = true});
  // Many tokens of few experts: several tiles of one expert, and one that is unused.
  add({.tokens = 35, .chosen = 2, .experts = 3, .in = 256, .outs = {66}, .bias = true});
  add({.tokens = 20, .chosen = 1, .experts = 8, .in = 256, .outs = {5, 33}, .row_each = true});
}

std::vector<LinearCase> linear_cases() {
  std::vector<LinearCase> out;
  for (const DType weight : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      add_linear(weight, dtype, out);
    }
  }
  for (const DType weight : test::usual_block_types()) {
    add_linear(weight, weight == DType::q4_k ? DType::bf16 : DType::f32, out);
  }
  // One token, a few, and tiles of them.
  for (const DType weight : test::few_bit_block_types()) {
    for (const int64_t tokens : {1, 5, 35}) {
      out.push_back({.tokens = tokens,
                     .chosen = 2,
                     .experts = tokens == 35 ? 3 : 6,
                     .in = tokens == 5 ? 768 : 256,
                     .outs = {67, 9},
                     .weight = weight,
                     .dtype = tokens == 5 ? DType::bf16 : DType::f32,
                     .bias = tokens == 1});
    }
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t tokens : {int64_t{1}, int64_t{35}}) {
      out.push_back({.tokens = tokens,
                     .experts = 5,
                     .in = 96,
                     .outs = {67},
                     .weight = DType::mxfp4,
                     .dtype = dtype,
                     .bias = true,
                     .plain = true});
    }
  }
  // More than one tile of outputs and of rows, a depth that ends within a step.
  out.push_back({.tokens = 150,
                 .chosen = 1,
                 .experts = 2,
                 .in = 72,
                 .outs = {130, 64},
                 .weight = DType::bf16,
                 .dtype = DType::bf16});
  // Rows that 16-byte reads cannot be used for.
  out.push_back({.tokens = 3, .in = 37, .outs = {5}, .bias = true});
  out.push_back({.tokens = 3, .in = 37, .outs = {5}, .weight = DType::f16, .dtype = DType::f16});
  out.push_back({.tokens = 0});
  out.push_back({.chosen = 4,
                 .experts = 8,
                 .in = 1024,
                 .outs = {512, 512},
                 .weight = DType::bf16,
                 .dtype = DType::bf16,
                 .big = true});
  return out;
}

// Chooses experts by a fixed rule; the last of several is never chosen.
std::vector<int32_t> ids_of(const LinearCase& c) {
  std::vector<int32_t> ids;
  const int64_t taken = std::max<int64_t>(1, c.experts - 1);
  for (int64_t i = 0; i < c.tokens * c.chosen; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7 + i / c.chosen * 3) % taken));
  }
  return ids;
}

// A weight of all experts. On GPUs it is packed; their layouts are per row.
View stack(const LinearCase& c, int64_t outs, Scene& scene) {
  View weight = scene.input({{c.experts * outs, c.in}}, c.weight, {-0.5, 0.5});
  if (scene.device().id().kind != DeviceKind::cpu && !c.plain) weight = pack(weight, scene);
  weight.rank = 3;
  const int64_t sizes[] = {c.experts, outs, c.in}, strides[] = {outs * c.in, c.in, 1};
  std::copy_n(sizes, 3, weight.sizes);
  std::copy_n(strides, 3, weight.strides);
  return weight;
}

ExpertLinearArgs build(const LinearCase& c, Scene& scene) {
  ExpertLinearArgs args{};
  const int64_t rows = c.tokens * (c.row_each ? c.chosen : 1);
  args.x = scene.input({{rows, c.in}}, c.dtype);
  const std::vector<int32_t> ids = ids_of(c);
  args.ids = scene.input_of<int32_t>({c.tokens, c.chosen}, ids);
  std::vector<ExpertPart> parts;
  for (const int64_t outs : c.outs) {
    ExpertPart part{.weight = stack(c, outs, scene), .bias = {}, .y = {}};
    if (c.bias) part.bias = scene.input({{c.experts, outs}}, c.dtype);
    part.y = scene.output({{c.tokens * c.chosen, outs}}, c.dtype);
    scene.flops += 2.0 * static_cast<double>(c.tokens * c.chosen * outs * c.in);
    parts.push_back(part);
  }
  args.parts = scene.hold(std::move(parts));
  const std::set<int32_t> taken(ids.begin(), ids.end());
  scene.bytes *= static_cast<double>(taken.size()) / static_cast<double>(c.experts);
  return args;
}

std::vector<HostArray> linear_formula(const LinearCase& c, const std::vector<HostArray>& inputs) {
  std::vector<HostArray> results;
  size_t next = 2;
  const std::vector<int32_t> ids = ids_of(c);
  for (const int64_t outs : c.outs) {
    const HostArray& weight = inputs[next++];
    const HostArray* bias = c.bias ? &inputs[next++] : nullptr;
    HostArray y = host_zeros({c.tokens * c.chosen, outs});
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t choice = i / outs, row = c.row_each ? choice : choice / c.chosen;
      const int64_t column = ids[static_cast<size_t>(choice)] * outs + i % outs;
      y[i] = bias != nullptr ? (*bias)[column] : 0.0;
      y[i] += dot(inputs[0], row * c.in, weight, column * c.in, c.in);
    }
    results.push_back(std::move(y));
  }
  return results;
}

std::string name_of(const LinearCase& c) {
  std::string outs;
  for (const int64_t out : c.outs) outs += cat(outs.empty() ? "" : "+", out);
  return cat(c.dtype, " (", c.tokens, ", ", c.in, ") x ", c.chosen, " of ", c.experts, ' ',
             c.weight, " (", outs, ')', c.row_each ? " a row each" : "",
             c.plain ? " not packed" : "", c.bias ? " + bias" : "");
}

Family family_of(const LinearCase& c) {
  return is_quantized(c.weight) ? Family::quant_product : Family::product;
}

OpTable linear_table() {
  OpTable out("expert_linear");
  for (const LinearCase& c : linear_cases()) {
    out.add<ExpertLinearArgs>(
        &KernelTable::expert_linear,
        {.name = name_of(c),
         .family = family_of(c),
         .build = [c](Scene& scene) { return build(c, scene); },
         .formula = [c](const std::vector<HostArray>& in) { return linear_formula(c, in); },
         .big = c.big});
  }
  return out;
}

struct SumCase {
  int64_t tokens = 1, chosen = 2, dim = 64;
  DType dtype = DType::f32;
  bool big = false;
};

std::vector<SumCase> sum_cases() {
  std::vector<SumCase> out;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    out.push_back({.dtype = dtype});
    out.push_back({.tokens = 7, .chosen = 8, .dim = 129, .dtype = dtype});
    out.push_back({.tokens = 130, .chosen = 1, .dim = 33, .dtype = dtype});
  }
  out.push_back({.tokens = 0});
  out.push_back({.tokens = 64, .chosen = 8, .dim = 2048, .dtype = DType::bf16, .big = true});
  return out;
}

std::vector<HostArray> sum_formula(const SumCase& c, const std::vector<HostArray>& inputs) {
  HostArray y = host_zeros({c.tokens, c.dim});
  for (int64_t i = 0; i < y.numel(); ++i) {
    for (int64_t j = 0; j < c.chosen; ++j) {
      const int64_t choice = i / c.dim * c.chosen + j;
      y[i] += inputs[1][choice] * inputs[0][choice * c.dim + i % c.dim];
    }
  }
  return {y};
}

OpTable sum_table() {
  OpTable out("expert_sum");
  for (const SumCase& c : sum_cases()) {
    out.add<ExpertSumArgs>(
        &KernelTable::expert_sum,
        {.name = cat(c.dtype, " (", c.tokens, " * ", c.chosen, ", ", c.dim, ')'),
         .family = Family::reduction,
         .build =
             [c](Scene& scene) {
               ExpertSumArgs args{};
               args.x = scene.input({{c.tokens * c.chosen, c.dim}}, c.dtype);
               args.weights = scene.input({{c.tokens, c.chosen}}, DType::f32, {0, 1});
               args.y = scene.output({{c.tokens, c.dim}}, c.dtype);
               scene.flops = 2.0 * static_cast<double>(c.tokens * c.chosen * c.dim);
               return args;
             },
         .formula = [c](const std::vector<HostArray>& in) { return sum_formula(c, in); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kRoute(route_table);
const RegisterOp kLinear(linear_table);
const RegisterOp kSum(sum_table);

}  // namespace
}  // namespace rbee::harness
