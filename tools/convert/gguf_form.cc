#include "tools/convert/gguf_form.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "rbee/core/error.h"
#include "rbee/models/gemma/config.h"
#include "rbee/models/gemma2/config.h"
#include "rbee/models/gemma3/config.h"
#include "rbee/models/glm4/config.h"
#include "rbee/models/llama/config.h"
#include "rbee/models/llama_moe/config.h"
#include "rbee/models/mixtral/config.h"
#include "rbee/models/olmo2/config.h"
#include "rbee/models/phi3/config.h"
#include "rbee/models/qwen2/config.h"
#include "rbee/models/qwen3/config.h"
#include "rbee/models/qwen_moe/config.h"
#include "rbee/models/stablelm/config.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "convert";

// GGUF files do not say the activation: readers take the family's own.
void check_activation(GateOp found, GateOp own) {
  if (found == own) return;
  fail(Code::unsupported, kOp,
       "config.json's hidden_act is not the one that readers of GGUF files ",
       "take for this architecture");
}

template <typename Slides>
std::vector<int64_t> windows_where(const std::vector<int64_t>& windows, Slides slides) {
  int64_t size = 0;
  for (const int64_t window : windows) size = std::max(size, window);
  std::vector<int64_t> out(windows.size(), 0);
  for (size_t layer = 0; layer < out.size(); ++layer) {
    if (slides(layer)) out[layer] = size;
  }
  return out;
}

// Config: any family's.
template <typename Config>
GgufForm common_form(std::string_view architecture, const Config& config) {
  if (!config.causal) {
    fail(Code::unsupported, kOp, "models that see both ways are not converted; llama.cpp's ",
         "converter writes their GGUF files");
  }
  GgufForm form;
  form.architecture = architecture;
  form.config = config;
  return form;
}

// Readers take every fourth layer of SmolLM3 for the one without rope.
void check_rotated(const std::vector<bool>& rotated) {
  for (size_t layer = 0; layer < rotated.size(); ++layer) {
    if (rotated[layer] == ((layer + 1) % 4 != 0)) continue;
    fail(Code::unsupported, kOp, "config.json's no_rope_layers are not every fourth layer, which ",
         "GGUF files of smollm3 cannot say");
  }
}

// architecture: llama, mistral3, granite, smollm3, seed_oss, ernie4_5 or hunyuan-dense.
GgufForm llama_form(std::string_view architecture, const models::ConfigReader& reader) {
  const models::LlamaConfig config = models::read_llama_config(reader);
  check_activation(config.activation, GateOp::silu);
  GgufForm form = common_form(architecture, config);
  if (architecture == "smollm3") check_rotated(config.rotated);
  if (architecture == "granite") {
    form.scales = {{"embedding_scale", config.embedding_scale},
                   {"residual_scale", config.branch_scale},
                   {"attention.scale", config.attention_scale},
                   {"logit_scale", 1 / config.logit_scale}};
  }
  if (config.rope.query_growth != 0) {
    form.scales = {{"attention.temperature_scale", static_cast<float>(config.rope.query_growth)}};
  }
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), config.window);
  form.usual_windows = form.windows;
  form.paired_rows = !config.plain_rows;
  return form;
}

// architecture: olmo2 or exaone4.
GgufForm olmo2_form(std::string_view architecture, const models::ConfigReader& reader) {
  const models::Olmo2Config config = models::read_olmo2_config(reader);
  check_activation(config.activation, GateOp::silu);
  if (config.attention_bias != nn::Bias::none) {
    fail(Code::unsupported, kOp, "config.json's attention_bias is true; GGUF files of olmo2 have ",
         "no biases");
  }
  GgufForm form = common_form(architecture, config);
  form.rope = config.rope;
  if (config.local_rope.base != config.rope.base) form.local_rope_base = config.local_rope.base;
  form.windows = config.windows;
  form.usual_windows.assign(config.windows.size(), 0);  // so that the layers are listed
  return form;
}

GgufForm glm4_form(const models::ConfigReader& reader) {
  const models::Glm4Config config = models::read_glm4_config(reader);
  check_activation(config.activation, GateOp::silu);
  GgufForm form = common_form("glm4", config);
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), 0);
  form.usual_windows = form.windows;
  return form;
}

GgufForm cohere2_form(const models::ConfigReader& reader) {
  const models::StableLmConfig config = models::read_stablelm_config(reader);
  check_activation(config.activation, GateOp::silu);
  const auto refuse = [](std::string_view what) {
    fail(Code::unsupported, kOp, "config.json's ", what,
         ", which GGUF files of cohere2 cannot say");
  };
  if (config.qkv_bias != nn::Bias::none) refuse("attention_bias is true");
  if (!config.tied_embeddings) refuse("tie_word_embeddings is false");
  GgufForm form = common_form("cohere2", config);
  form.rope = config.rope;
  form.layer_norm = true;
  form.scales = {{"logit_scale", config.logit_scale}};
  form.windows = config.windows;
  form.usual_windows =
      windows_where(config.windows, [](size_t layer) { return (layer + 1) % 4 != 0; });
  form.absent = {"blk.*.attn_q_norm", "blk.*.attn_k_norm", "blk.*.ffn_norm"};
  return form;
}

// Qwen2Config or Qwen3Config: from a fixed layer on windows slide.
template <typename Config>
GgufForm qwen_form(std::string_view architecture, const Config& config) {
  check_activation(config.activation, GateOp::silu);
  constexpr size_t kFirstWindowed = 28;
  GgufForm form = common_form(architecture, config);
  form.rope = config.rope;
  form.windows = config.windows;
  form.usual_windows =
      windows_where(config.windows, [](size_t layer) { return layer >= kFirstWindowed; });
  return form;
}

GgufForm qwen3_form(const models::ConfigReader& reader) {
  const models::Qwen3Config config = models::read_qwen3_config(reader);
  if (config.attention_bias != nn::Bias::none) {
    fail(Code::unsupported, kOp, "config.json's attention_bias is true; GGUF files of qwen3 have ",
         "no biases");
  }
  return qwen_form("qwen3", config);
}

GgufForm mixtral_form(const models::ConfigReader& reader) {
  const models::MixtralConfig config = models::read_mixtral_config(reader);
  check_activation(config.activation, GateOp::silu);
  GgufForm form = common_form("llama", config);  // with experts
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), config.window);
  form.usual_windows = form.windows;
  form.paired_rows = true;
  form.experts = config.experts;
  return form;
}

// architecture: qwen2moe or qwen3moe. What their files cannot say readers take for granted.
GgufForm qwen_moe_form(std::string_view architecture, const models::QwenMoeConfig& config) {
  check_activation(config.activation, GateOp::silu);
  const bool third = architecture == "qwen3moe";
  const auto refuse = [&](std::string_view what) {
    fail(Code::unsupported, kOp, "config.json's ", what, ", which GGUF files of ", architecture,
         " cannot say");
  };
  if (!std::ranges::all_of(config.sparse, std::identity())) {
    refuse("decoder_sparse_step or mlp_only_layers leaves layers without experts");
  }
  if (config.normalise != third)
    refuse(third ? "norm_topk_prob is false" : "norm_topk_prob is true");
  if ((config.qkv_bias == nn::Bias::required) == third) {
    refuse(third ? "attention_bias is true" : "qkv_bias is false");
  }
  GgufForm form = common_form(architecture, config);
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), 0);
  form.usual_windows = form.windows;
  form.experts = config.experts;
  form.sizes = {{"expert_feed_forward_length", config.expert_ffn_dim}};
  form.absent = {"blk.*.ffn_gate", "blk.*.ffn_up", "blk.*.ffn_down"};
  if (third) {
    form.absent.insert(form.absent.end(), {"blk.*.ffn_gate_inp_shexp", "blk.*.ffn_gate_shexp",
                                           "blk.*.ffn_up_shexp", "blk.*.ffn_down_shexp"});
  } else {
    form.absent.insert(form.absent.end(), {"blk.*.attn_q_norm", "blk.*.attn_k_norm"});
    form.sizes.emplace_back("expert_shared_feed_forward_length", config.shared_ffn_dim);
  }
  return form;
}

// The number of first layers without experts; GGUF files cannot say that others lack them.
int64_t leading_dense(const std::vector<bool>& sparse) {
  const auto first = std::ranges::find(sparse, true);
  if (std::find(first, sparse.end(), false) != sparse.end()) {
    fail(Code::unsupported, kOp, "config.json leaves layers behind the first one with experts ",
         "without, which is not converted");
  }
  return first - sparse.begin();
}

void set_router(std::string_view architecture, const models::LlamaMoeConfig& config,
                GgufForm& form) {
  const RouteOptions& route = config.moe.route;
  constexpr int64_t kSigmoid = 2;
  form.sizes = {{"expert_feed_forward_length", config.moe.ffn_dim}};
  const auto size = [&](std::string_view key, int64_t value) {
    form.sizes.emplace_back(key, value);
  };
  if (route.score == ExpertScore::sigmoid) size("expert_gating_func", kSigmoid);
  const int64_t dense = leading_dense(config.sparse);
  if (architecture == "ernie4_5-moe") size("interleave_moe_layer_step", 1);
  if (dense > 0) size("leading_dense_block_count", dense);
  if (config.moe.shared_ffn_dim > 0) {
    size("expert_shared_count",
         std::max<int64_t>(config.moe.shared_ffn_dim / config.moe.ffn_dim, 1));
    size("expert_shared_feed_forward_length", config.moe.shared_ffn_dim);
  }
  if (architecture != "glm4moe") return;
  size("expert_group_count", route.groups);
  size("expert_group_used_count", route.kept_groups);
  form.scales = {{"expert_weights_scale", route.scale}};
  form.normalises = route.normalise;
}

// architecture: glm4moe, minimax-m2, ernie4_5-moe or hunyuan-moe.
GgufForm llama_moe_form(std::string_view architecture, const models::ConfigReader& reader) {
  const models::LlamaMoeConfig config = models::read_llama_moe_config(reader);
  check_activation(config.activation, GateOp::silu);
  GgufForm form = common_form(architecture, config);
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), 0);
  form.usual_windows = form.windows;
  form.experts = {.all = config.moe.experts, .chosen = config.moe.route.chosen};
  form.sparse = config.sparse;
  set_router(architecture, config, form);
  if (config.qk_norm == nn::QkNorm::none) {
    form.absent.insert(form.absent.end(), {"blk.*.attn_q_norm", "blk.*.attn_k_norm"});
  }
  if (!config.moe.choice_bias) form.absent.emplace_back("blk.*.exp_probs_b");
  if (config.moe.shared_ffn_dim == 0) {
    form.absent.insert(form.absent.end(),
                       {"blk.*.ffn_gate_shexp", "blk.*.ffn_up_shexp", "blk.*.ffn_down_shexp"});
  }
  return form;
}

GgufForm phi3_form(const models::ConfigReader& reader) {
  const models::Phi3Config config = models::read_phi3_config(reader);
  check_activation(config.activation, GateOp::silu);
  GgufForm form = common_form("phi3", config);
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), config.window);
  form.usual_windows = form.windows;
  return form;
}

// The root of what scores are divided by: the head size, but for the largest model of a family,
// known by its layers, the width by heads.
float query_scale(const models::ModelConfig& config, float attention_scale, int64_t largest) {
  const int64_t taken = config.layers == largest ? config.dim / config.heads : config.head_dim;
  const float scale = attention_scale * std::sqrt(static_cast<float>(taken));
  constexpr float kRounding = 1e-6f;
  return std::fabs(scale - 1) < kRounding ? 1.0f : scale;
}

GgufForm gemma_form(const models::ConfigReader& reader) {
  const models::GemmaConfig config = models::read_gemma_config(reader);
  check_activation(config.activation, GateOp::gelu);
  GgufForm form = common_form("gemma", config);
  form.rope = config.rope;
  form.windows.assign(static_cast<size_t>(config.layers), 0);
  form.usual_windows = form.windows;
  form.norm_offset = config.norm_weight_offset;
  return form;
}

GgufForm gemma2_form(const models::ConfigReader& reader) {
  const models::Gemma2Config config = models::read_gemma2_config(reader);
  check_activation(config.activation, GateOp::gelu);
  GgufForm form = common_form("gemma2", config);
  form.rope = config.rope;
  form.attention_softcap = config.attention_softcap;
  form.logit_softcap = config.logit_softcap;
  form.windows = config.windows;
  form.usual_windows = windows_where(config.windows, [](size_t layer) { return layer % 2 == 0; });
  form.norm_offset = config.norm_weight_offset;
  form.query_scale = query_scale(config, config.attention_scale, 46);
  form.query_weight = "attn_q";
  return form;
}

GgufForm gemma3_form(const models::ConfigReader& reader) {
  const models::Gemma3Config config = models::read_gemma3_config(reader);
  check_activation(config.activation, GateOp::gelu);
  GgufForm form = common_form("gemma3", config);
  form.rope = config.global_rope;
  form.local_rope_base = config.local_rope.base;
  if (config.logit_softcap != 0) form.logit_softcap = config.logit_softcap;
  form.windows = config.windows;
  form.usual_windows =
      windows_where(config.windows, [](size_t layer) { return (layer + 1) % 6 != 0; });
  form.norm_offset = config.norm_weight_offset;
  form.query_scale = query_scale(config, config.attention_scale, 62);
  form.query_weight = "attn_q_norm";  // the norm of the heads of q undoes a scale before it
  return form;
}

}  // namespace

GgufForm read_gguf_form(const io::Checkpoint& checkpoint) {
  const std::string architecture = checkpoint.architecture();
  const models::ConfigReader reader(checkpoint, "text_config");
  if (architecture == "llama" || architecture == "mistral") return llama_form("llama", reader);
  if (architecture == "ministral3") return llama_form("mistral3", reader);
  if (architecture == "mistral3" || architecture == "granite" || architecture == "smollm3") {
    return llama_form(architecture, reader);
  }
  if (architecture == "seed_oss" || architecture == "ernie4_5") {
    return llama_form(architecture, reader);
  }
  if (architecture == "hunyuan_v1_dense") return llama_form("hunyuan-dense", reader);
  if (architecture == "olmo2" || architecture == "olmo3") return olmo2_form("olmo2", reader);
  if (architecture == "exaone4") return olmo2_form(architecture, reader);
  if (architecture == "glm4") return glm4_form(reader);
  if (architecture == "cohere2") return cohere2_form(reader);
  if (architecture == "glm4_moe") return llama_moe_form("glm4moe", reader);
  if (architecture == "minimax_m2") return llama_moe_form("minimax-m2", reader);
  if (architecture == "ernie4_5_moe") return llama_moe_form("ernie4_5-moe", reader);
  if (architecture == "hunyuan_v1_moe") return llama_moe_form("hunyuan-moe", reader);
  if (architecture == "qwen2") return qwen_form("qwen2", models::read_qwen2_config(reader));
  if (architecture == "qwen3") return qwen3_form(reader);
  if (architecture == "mixtral") return mixtral_form(reader);
  if (architecture == "qwen2_moe") {
    return qwen_moe_form("qwen2moe", models::read_qwen2_moe_config(reader));
  }
  if (architecture == "qwen3_moe") {
    return qwen_moe_form("qwen3moe", models::read_qwen3_moe_config(reader));
  }
  if (architecture == "gemma") return gemma_form(reader);
  if (architecture == "gemma2") return gemma2_form(reader);
  if (architecture == "gemma3" || architecture == "gemma3_text") return gemma3_form(reader);
  if (architecture == "phi3") return phi3_form(reader);
  fail(Code::unsupported, kOp, "models of the architecture \"", architecture,
       "\" are not turned into GGUF files");
}

RowEdit edit_of(const GgufForm& form, std::string_view name) {
  const auto is = [&](std::string_view part) {
    return name.ends_with(cat(".", part, ".weight")) || name.ends_with(cat(".", part, ".bias"));
  };
  RowEdit edit;
  if (form.paired_rows && is("attn_q")) edit.pair_heads = form.config.heads;
  if (form.paired_rows && is("attn_k")) edit.pair_heads = form.config.kv_heads;
  if (name.ends_with("norm.weight")) edit.offset = form.norm_offset;
  if (!form.query_weight.empty() && is(form.query_weight)) edit.scale = form.query_scale;
  return edit;
}

}  // namespace rbee::tools
