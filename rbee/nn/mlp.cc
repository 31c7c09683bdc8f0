#include "rbee/nn/mlp.h"

#include <algorithm>
#include <numeric>

namespace rbee::nn {

group::Share share_beside(const group::Share& share, double total, std::span<const double> beside) {
  if (share.alone() || beside.empty()) return share;
  group::Share out = share;
  out.parts.assign(beside.size(), 0);
  const double all = std::accumulate(beside.begin(), beside.end(), total);
  const double shares = std::accumulate(share.parts.begin(), share.parts.end(), 0.0);
  for (size_t rank = 0; rank < beside.size(); ++rank) {
    const double part = share.parts.empty() ? 1.0 / share.ranks : share.parts[rank] / shares;
    out.parts[rank] = std::max(part * all - beside[rank], 0.0);
  }
  const bool none = std::ranges::all_of(out.parts, [](double part) { return part == 0; });
  return none ? share : out;
}

group::Range ffn_columns(const WeightScope& down, int64_t ffn_dim, const group::Share& share) {
  if (share.alone()) return {0, ffn_dim};
  const int64_t block = down.input_block("weight");
  std::vector<int64_t> units;
  // What kernels of products take at once, on GPUs and on CPUs.
  for (const int64_t unit : {128, 32, 8}) {
    if (unit % block == 0 && unit > block) units.push_back(unit);
  }
  units.push_back(block);
  return share.range(ffn_dim, share.unit_for_all(ffn_dim, units));
}

Mlp::Mlp(const WeightScope& layer, const MlpSpec& spec) : activation_(spec.activation) {
  const auto name = [&](std::string_view part) { return cat(part, spec.suffix); };
  constexpr double kMatrices = 3;
  const group::Share share = share_beside(
      layer.group().share,
      kMatrices * static_cast<double>(spec.dim) * static_cast<double>(spec.ffn_dim), spec.beside);
  const group::Range columns = ffn_columns(layer / name("ffn_down"), spec.ffn_dim, share);
  columns_ = columns.count;
  LinearShape shape{.in = spec.dim, .out = spec.ffn_dim, .bias = spec.bias, .adapted = true};
  if (spec.fused) {
    shape.total_rows = 2 * spec.ffn_dim;
    gate_ = Linear(layer / name("ffn_up"), part_of(shape, columns));
    shape.first_row = spec.ffn_dim;
    up_ = Linear(layer / name("ffn_up"), part_of(shape, columns));
  } else {
    gate_ = Linear(layer / name("ffn_gate"), part_of(shape, columns));
    up_ = Linear(layer / name("ffn_up"), part_of(shape, columns));
  }
  adjoin(layer, {&gate_, &up_});
  LinearShape down{.in = spec.ffn_dim, .out = spec.dim, .bias = spec.bias, .adapted = true};
  if (!layer.group().alone()) down.inputs = columns;
  down_ = Linear(layer / name("ffn_down"), down);
}

Tensor Mlp::hidden(const LayerInput& x) const {
  if (columns_ == 0) return empty({x.x.dim(0), 0}, x.x.dtype(), x.x.device());
  return gated_linear(activation_, x, gate_, up_);
}

}  // namespace rbee::nn
