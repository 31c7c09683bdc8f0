#include "rbee/nn/mlp.h"

namespace rbee::nn {

Mlp::Mlp(const WeightScope& layer, const MlpSpec& spec) : activation_(spec.activation) {
  const auto name = [&](std::string_view part) { return cat(part, spec.suffix); };
  LinearShape shape{.in = spec.dim, .out = spec.ffn_dim, .bias = spec.bias, .adapted = true};
  if (spec.fused) {
    shape.total_rows = 2 * spec.ffn_dim;
    gate_ = Linear(layer / name("ffn_up"), shape);
    shape.first_row = spec.ffn_dim;
    up_ = Linear(layer / name("ffn_up"), shape);
  } else {
    gate_ = Linear(layer / name("ffn_gate"), shape);
    up_ = Linear(layer / name("ffn_up"), shape);
  }
  adjoin(layer, {&gate_, &up_});
  down_ = Linear(layer / name("ffn_down"),
                 {.in = spec.ffn_dim, .out = spec.dim, .bias = spec.bias, .adapted = true});
}

}  // namespace rbee::nn
