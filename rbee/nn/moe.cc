#include "rbee/nn/moe.h"

#include <array>

#include "rbee/ops/activation.h"
#include "rbee/ops/elementwise.h"

namespace rbee::nn {

Moe::Moe(const WeightScope& layer, const MoeSpec& spec)
    : spec_(spec),
      router_(layer / "ffn_gate_inp", {.in = spec.dim, .out = spec.experts}),
      gate_{(layer / "ffn_gate_exps").experts("weight", {spec.experts, spec.ffn_dim, spec.dim}),
            {}},
      up_{(layer / "ffn_up_exps").experts("weight", {spec.experts, spec.ffn_dim, spec.dim}), {}},
      down_{(layer / "ffn_down_exps").experts("weight", {spec.experts, spec.dim, spec.ffn_dim}),
            {}} {
  if (spec.choice_bias) {
    const std::vector<float> bias =
        layer.is_gguf() ? (layer / "exp_probs_b").values("bias", spec.experts)
                        : (layer / "ffn_gate_inp").values("e_score_correction_bias", spec.experts);
    spec_.route.bias = from_host<float>(bias, {spec.experts}, layer.device());
  }
  if (spec.shared_ffn_dim == 0) return;
  shared_.emplace_back(layer, MlpSpec{.dim = spec.dim,
                                      .ffn_dim = spec.shared_ffn_dim,
                                      .activation = spec.activation,
                                      .suffix = "_shexp"});
  if (spec.shared_is_gated) {
    shared_gate_ = Linear(layer / "ffn_gate_inp_shexp", {.in = spec.dim, .out = 1});
  }
}

Tensor Moe::shared(const Tensor& x) const {
  const Tensor y = shared_.front()(x);
  return spec_.shared_is_gated ? y * unary(UnaryOp::sigmoid, shared_gate_(x)) : y;
}

Tensor Moe::operator()(const Tensor& x) const {
  const Routing routing = route_experts(cast(router_(x), DType::f32), spec_.route);
  const std::array<const LinearWeights*, 2> gate_and_up{&gate_, &up_};
  const std::vector<Tensor> parts = expert_linear(x, routing.ids, gate_and_up);
  const std::array<const LinearWeights*, 1> down{&down_};
  const Tensor each =
      expert_linear(gated(spec_.activation, parts[0], parts[1]), routing.ids, down).front();
  const Tensor y = expert_sum(each, routing.weights);
  return shared_.empty() ? y : y + shared(x);
}

}  // namespace rbee::nn
