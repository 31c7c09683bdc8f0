#include "rbee/models/nomic_bert/feed_forward.h"

#include <array>

#include "rbee/ops/elementwise.h"
#include "rbee/ops/experts.h"

namespace rbee::models {

NomicMlp::NomicMlp(const nn::WeightScope& layer, const NomicBertConfig& config)
    : activation_(config.plain_activation),
      up_(layer / (layer.is_gguf() ? "ffn_up" : "ffn_fc1"),
          {.in = config.dim, .out = config.ffn_dim, .bias = config.up_bias}),
      down_(layer / "ffn_down",
            {.in = config.ffn_dim, .out = config.dim, .bias = config.down_bias}) {}

Tensor NomicMlp::operator()(const Tensor& x) const {
  return down_(unary(activation_, up_(x)));
}

NomicExperts::NomicExperts(const nn::WeightScope& layer, const NomicBertConfig& config)
    : activation_(config.plain_activation),
      chosen_(config.chosen_experts),
      router_(layer / "ffn_gate_inp", {.in = config.dim, .out = config.experts}) {
  const int64_t experts = config.experts, ffn = config.ffn_dim, dim = config.dim;
  const nn::WeightScope up = layer / "ffn_up_exps", down = layer / "ffn_down_exps";
  if (layer.is_gguf()) {
    up_.weight = up.experts("weight", {experts, ffn, dim});
    down_.weight = down.experts("weight", {experts, dim, ffn});
    return;
  }
  const auto rows_of = [&](const Tensor& all, int64_t expert) {
    return all.slice(Axis{0}, expert * ffn, ffn);
  };
  const Tensor w1 = up.table("w1", {experts * ffn, dim});
  const Tensor w2 = down.table("w2", {experts * ffn, dim});
  up_.weight = pack_experts(experts, [&](int64_t expert) { return rows_of(w1, expert); });
  down_.weight = pack_experts(
      experts, [&](int64_t expert) { return contiguous(rows_of(w2, expert).permute({1, 0})); });
  const nn::WeightScope all = layer / "ffn_exps";
  if (all.has("bias")) bias_ = all.vector("bias", dim);
}

Tensor NomicExperts::operator()(const Tensor& x) const {
  const Routing routing = route_experts(cast(router_(x), DType::f32), {.chosen = chosen_});
  const std::array<const LinearWeights*, 1> up{&up_}, down{&down_};
  const Tensor hidden = unary(activation_, expert_linear(x, routing.ids, up).front());
  const Tensor y = expert_sum(expert_linear(hidden, routing.ids, down).front(), routing.weights);
  return bias_.defined() ? y + bias_ : y;
}

}  // namespace rbee::models
