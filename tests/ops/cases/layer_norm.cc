// layer_norm and group_norm, with and without weight and bias.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct NormCase {
  Layout x;
  int32_t groups = 1;  // group_norm only
  DType dtype = DType::f32;
  bool weight = true;
  bool bias = true;
  Form vector_form = Form::step2;  // of the weight of layer_norm, of the bias of group_norm
  float eps = 1e-5f;
  bool big = false;
};

std::string name_of(const NormCase& c) {
  return cat(c.dtype, ' ', c.x, " groups ", c.groups, c.weight ? "" : " no weight",
             c.bias ? "" : " no bias");
}

// Mean and 1 / sqrt(variance + eps) of values [first, last).
struct Statistics {
  double mean = 0;
  double scale = 0;
};
Statistics statistics(const HostArray& x, int64_t first, int64_t last, float eps) {
  const auto count = static_cast<double>(last - first);
  Statistics out;
  for (int64_t i = first; i < last; ++i) out.mean += x[i] / count;
  double variance = 0;
  for (int64_t i = first; i < last; ++i) variance += std::pow(x[i] - out.mean, 2) / count;
  out.scale = 1 / std::sqrt(variance + eps);
  return out;
}

// Both norms work on runs of `run` elements; element i uses weight number channel(i).
template <typename Channel>
std::vector<HostArray> normalise(const NormCase& c, const std::vector<HostArray>& in, int64_t run,
                                 Channel channel) {
  HostArray y = in[0];
  for (int64_t first = 0; first < y.numel(); first += run) {
    const Statistics of = statistics(in[0], first, first + run, c.eps);
    for (int64_t i = first; i < first + run; ++i) {
      y[i] = (y[i] - of.mean) * of.scale;
      if (c.weight) y[i] *= in[1][channel(i)];
      if (c.bias) y[i] += in[c.weight ? 2 : 1][channel(i)];
    }
  }
  return {y};
}

std::vector<NormCase> layer_cases() {
  std::vector<NormCase> out;
  for (const DType dtype : kFloatTypes) {
    out.push_back({.x = {{7, 33}}, .dtype = dtype});
    out.push_back({.x = {{3, 5, 131}, Form::gaps}, .dtype = dtype, .bias = false});
    out.push_back({.x = {{17, 64}, Form::transposed}, .dtype = dtype, .weight = false});
  }
  out.push_back({.x = {{1}}});
  out.push_back({.x = {{0, 8}}});
  out.push_back({.x = {{5, 8}}, .weight = false, .bias = false, .eps = 1e-2f});
  out.push_back({.x = {{4, 6, 7}, Form::contiguous, 0b010}});
  // Rows of whole 16-byte packs: one per thread, several, and more than a block keeps.
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t dim : {72, 1024, 1032, 8200}) {
      out.push_back({.x = {{2, dim}}, .dtype = dtype, .vector_form = Form::contiguous});
    }
  }
  out.push_back({.x = {{1024, 1024}}, .vector_form = Form::contiguous, .big = true});
  out.push_back({.x = {{1024, 1024}}, .dtype = DType::f16, .big = true});
  return out;
}

OpTable layer_norm_table() {
  OpTable out("layer_norm");
  for (const NormCase& c : layer_cases()) {
    const int64_t dim = c.x.shape[c.x.shape.rank() - 1];
    const auto build = [=](Scene& scene) {
      LayerNormArgs args{.x = scene.input(c.x, c.dtype), .eps = c.eps};
      if (c.weight) args.weight = scene.input({{dim}, c.vector_form}, c.dtype, {0.5, 1.5});
      if (c.bias) args.bias = scene.input({{dim}}, c.dtype);
      args.y = scene.output({c.x.shape}, c.dtype);
      scene.flops = 8.0 * static_cast<double>(args.x.numel());
      return args;
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      return normalise(c, in, dim, [=](int64_t i) { return i % dim; });
    };
    out.add<LayerNormArgs>(&KernelTable::layer_norm, {.name = name_of(c),
                                                      .family = Family::norm,
                                                      .build = build,
                                                      .formula = formula,
                                                      .big = c.big});
  }
  return out;
}

std::vector<NormCase> group_cases() {
  std::vector<NormCase> out;
  for (const DType dtype : kFloatTypes) {
    out.push_back({.x = {{2, 6, 5, 7}}, .groups = 3, .dtype = dtype});
    out.push_back(
        {.x = {{3, 8, 11}, Form::transposed}, .groups = 2, .dtype = dtype, .bias = false});
    out.push_back({.x = {{2, 4, 3, 9}, Form::gaps}, .groups = 4, .dtype = dtype, .weight = false});
  }
  out.push_back({.x = {{1, 1}}});
  out.push_back({.x = {{0, 4, 3}}, .groups = 2});
  out.push_back({.x = {{5, 12}}, .groups = 3});
  out.push_back({.x = {{2, 4, 2, 3, 5}}, .groups = 2, .weight = false, .bias = false});
  // Groups in contiguous runs, of one tile and of several; and several without runs.
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    out.push_back({.x = {{2, 64}}, .groups = 2, .dtype = dtype, .vector_form = Form::contiguous});
    out.push_back({.x = {{2, 4, 8, 8}}, .groups = 2, .dtype = dtype});
    out.push_back({.x = {{1, 4, 72, 64}}, .groups = 2, .dtype = dtype});
    out.push_back({.x = {{2, 2, 33, 37}}, .dtype = dtype});
  }
  out.push_back({.x = {{1, 2, 33, 37}}, .dtype = DType::f64});
  out.push_back({.x = {{1, 320, 64, 64}}, .groups = 32, .big = true});
  return out;
}

OpTable group_norm_table() {
  OpTable out("group_norm");
  for (const NormCase& c : group_cases()) {
    const int64_t channels = c.x.shape[1];
    int64_t spatial = 1;
    for (int i = 2; i < c.x.shape.rank(); ++i) spatial *= c.x.shape[i];
    const auto build = [=](Scene& scene) {
      GroupNormArgs args{.x = scene.input(c.x, c.dtype), .groups = c.groups, .eps = c.eps};
      if (c.weight) args.weight = scene.input({{channels}}, c.dtype, {0.5, 1.5});
      if (c.bias) args.bias = scene.input({{channels}, c.vector_form}, c.dtype);
      args.y = scene.output({c.x.shape}, c.dtype);
      scene.flops = 8.0 * static_cast<double>(args.x.numel());
      return args;
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      return normalise(c, in, channels / c.groups * spatial,
                       [=](int64_t i) { return i / spatial % channels; });
    };
    out.add<GroupNormArgs>(&KernelTable::group_norm, {.name = name_of(c),
                                                      .family = Family::norm,
                                                      .build = build,
                                                      .formula = formula,
                                                      .big = c.big});
  }
  return out;
}

const RegisterOp kLayerNorm(layer_norm_table);
const RegisterOp kGroupNorm(group_norm_table);

}  // namespace
}  // namespace rbee::harness
