// The names of weights: most are GLM-4.5's, of which the other architectures change some.

#include <algorithm>
#include <array>

#include "rbee/models/llama_moe/model.h"

namespace rbee::models {
namespace {

constexpr std::array kGlm4Moe = std::to_array<nn::TensorName>({
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    {"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    {"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.gate"},
    {"blk.*.exp_probs_b", "model.layers.*.mlp.gate"},
    {"blk.*.ffn_gate_exps", "model.layers.*.mlp.experts.#.gate_proj"},
    {"blk.*.ffn_up_exps", "model.layers.*.mlp.experts.#.up_proj"},
    {"blk.*.ffn_down_exps", "model.layers.*.mlp.experts.#.down_proj"},
    {"blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_experts.gate_proj"},
    {"blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_experts.up_proj"},
    {"blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_experts.down_proj"},
});

// GLM-4.5's table with these rows in the place of those with the same name in either format.
template <size_t kCount>
consteval auto with(const nn::TensorName (&rows)[kCount]) {
  auto names = kGlm4Moe;
  for (const nn::TensorName& row : rows) {
    *std::ranges::find_if(names, [&](const nn::TensorName& each) {
      return each.gguf == row.gguf || (each.hf == row.hf && row.gguf == "blk.*.ffn_norm");
    }) = row;
  }
  return names;
}

constexpr nn::TensorName kFfnNorm{"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"};

constexpr auto kMinimaxM2 = with({
    kFfnNorm,
    {"blk.*.ffn_gate_inp", "model.layers.*.block_sparse_moe.gate"},
    {"blk.*.exp_probs_b", "model.layers.*.block_sparse_moe"},
    {"blk.*.ffn_gate_exps", "model.layers.*.block_sparse_moe.experts.#.w1"},
    {"blk.*.ffn_up_exps", "model.layers.*.block_sparse_moe.experts.#.w3"},
    {"blk.*.ffn_down_exps", "model.layers.*.block_sparse_moe.experts.#.w2"},
});

constexpr auto kErnie = with({
    kFfnNorm,
    {"blk.*.exp_probs_b", "model.layers.*.mlp.moe_statics"},
});

constexpr auto kHunyuan = with({
    kFfnNorm,
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.query_layernorm"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.key_layernorm"},
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.gate.wg"},
    {"blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_mlp.gate_proj"},
    {"blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_mlp.up_proj"},
    {"blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_mlp.down_proj"},
});

}  // namespace

std::span<const nn::TensorName> glm4_moe_tensor_names() {
  return kGlm4Moe;
}

std::span<const nn::TensorName> minimax_m2_tensor_names() {
  return kMinimaxM2;
}

std::span<const nn::TensorName> ernie4_5_moe_tensor_names() {
  return kErnie;
}

std::span<const nn::TensorName> hunyuan_moe_tensor_names() {
  return kHunyuan;
}

}  // namespace rbee::models
