#include "rbee/models/image/transformer_names.h"

#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "rbee/core/cat.h"

namespace rbee::models {
namespace {

struct Rule {
  std::string_view from;
  std::string_view to;
};

// Stacked layers: the parts of the rows and their owners.
struct Fused {
  std::string_view from;
  std::array<std::string_view, 4> to;
  std::array<int64_t, 4> shares{1, 1, 1, 0};
};

std::vector<LayerPart> whole(std::string module, bool swapped = false) {
  return {{.module = std::move(module), .rows = {}, .halves_swapped = swapped}};
}

std::vector<LayerPart> split(std::string_view head, const Fused& rule) {
  int64_t total = 0, first = 0;
  for (const int64_t share : rule.shares) total += share;
  std::vector<LayerPart> out;
  for (size_t i = 0; i < rule.to.size(); ++i) {
    if (rule.shares[i] == 0) continue;
    out.push_back({.module = cat(head, rule.to[i]),
                   .rows = {.first = first, .count = rule.shares[i], .shares = total}});
    first += rule.shares[i];
  }
  return out;
}

std::optional<std::string_view> found(std::span<const Rule> rules, std::string_view module) {
  for (const Rule& rule : rules) {
    if (rule.from == module) return rule.to;
  }
  return std::nullopt;
}

std::vector<LayerPart> layer(std::string_view head, std::string_view module,
                             std::span<const Fused> fused, std::span<const Rule> rules) {
  for (const Fused& rule : fused) {
    if (rule.from == module) return split(head, rule);
  }
  if (const auto to = found(rules, module)) return whole(cat(head, *to));
  return {};
}

struct Block {
  int64_t number = 0;
  std::string_view rest;  // after the number
};

// "<prefix>.<number>.<rest>"
std::optional<Block> block_of(std::string_view module, std::string_view prefix) {
  if (!module.starts_with(prefix)) return std::nullopt;
  module.remove_prefix(prefix.size());
  Block out;
  const char* const last = module.data() + module.size();
  const auto [end, error] = std::from_chars(module.data(), last, out.number);
  if (error != std::errc() || end == last || *end != '.') return std::nullopt;
  out.rest = module.substr(static_cast<size_t>(end - module.data()) + 1);
  return out;
}

void add_names(std::string_view head, std::span<const Fused> fused, std::span<const Rule> rules,
               std::vector<std::string>& out) {
  for (const Fused& rule : fused) out.push_back(cat(head, rule.from));
  for (const Rule& rule : rules) out.push_back(cat(head, rule.from));
}

constexpr Fused kFluxDouble[] = {
    {"img_attn.qkv", {"attn.to_q", "attn.to_k", "attn.to_v", ""}},
    {"txt_attn.qkv", {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", ""}},
};
constexpr Rule kFluxDoubleRules[] = {
    {"img_attn.norm.query_norm", "attn.norm_q"},
    {"img_attn.norm.key_norm", "attn.norm_k"},
    {"txt_attn.norm.query_norm", "attn.norm_added_q"},
    {"txt_attn.norm.key_norm", "attn.norm_added_k"},
    {"img_attn.proj", "attn.to_out.0"},
    {"txt_attn.proj", "attn.to_add_out"},
    {"img_mod.lin", "norm1.linear"},
    {"txt_mod.lin", "norm1_context.linear"},
    {"img_mlp.0", "ff.net.0.proj"},
    {"img_mlp.2", "ff.net.2"},
    {"txt_mlp.0", "ff_context.net.0.proj"},
    {"txt_mlp.2", "ff_context.net.2"},
};
constexpr Fused kFluxSingle[] = {
    {"linear1", {"attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"}, {1, 1, 1, 4}},
};
constexpr Rule kFluxSingleRules[] = {
    {"linear2", "proj_out"},
    {"modulation.lin", "norm.linear"},
    {"norm.query_norm", "attn.norm_q"},
    {"norm.key_norm", "attn.norm_k"},
};
constexpr Rule kFluxRoot[] = {
    {"img_in", "x_embedder"},
    {"txt_in", "context_embedder"},
    {"time_in.in_layer", "time_text_embed.timestep_embedder.linear_1"},
    {"time_in.out_layer", "time_text_embed.timestep_embedder.linear_2"},
    {"vector_in.in_layer", "time_text_embed.text_embedder.linear_1"},
    {"vector_in.out_layer", "time_text_embed.text_embedder.linear_2"},
    {"guidance_in.in_layer", "time_text_embed.guidance_embedder.linear_1"},
    {"guidance_in.out_layer", "time_text_embed.guidance_embedder.linear_2"},
    {"final_layer.linear", "proj_out"},
};

constexpr Fused kSd3Block[] = {
    {"x_block.attn.qkv", {"attn.to_q", "attn.to_k", "attn.to_v", ""}},
    {"x_block.attn2.qkv", {"attn2.to_q", "attn2.to_k", "attn2.to_v", ""}},
    {"context_block.attn.qkv", {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", ""}},
};
constexpr Rule kSd3BlockRules[] = {
    {"x_block.attn.proj", "attn.to_out.0"},
    {"x_block.attn.ln_q", "attn.norm_q"},
    {"x_block.attn.ln_k", "attn.norm_k"},
    {"x_block.attn2.proj", "attn2.to_out.0"},
    {"x_block.attn2.ln_q", "attn2.norm_q"},
    {"x_block.attn2.ln_k", "attn2.norm_k"},
    {"x_block.adaLN_modulation.1", "norm1.linear"},
    {"x_block.mlp.fc1", "ff.net.0.proj"},
    {"x_block.mlp.fc2", "ff.net.2"},
    {"context_block.attn.proj", "attn.to_add_out"},
    {"context_block.attn.ln_q", "attn.norm_added_q"},
    {"context_block.attn.ln_k", "attn.norm_added_k"},
    {"context_block.adaLN_modulation.1", "norm1_context.linear"},
    {"context_block.mlp.fc1", "ff_context.net.0.proj"},
    {"context_block.mlp.fc2", "ff_context.net.2"},
};
constexpr Rule kSd3Root[] = {
    {"x_embedder.proj", "pos_embed.proj"},
    {"context_embedder", "context_embedder"},
    {"t_embedder.mlp.0", "time_text_embed.timestep_embedder.linear_1"},
    {"t_embedder.mlp.2", "time_text_embed.timestep_embedder.linear_2"},
    {"y_embedder.mlp.0", "time_text_embed.text_embedder.linear_1"},
    {"y_embedder.mlp.2", "time_text_embed.text_embedder.linear_2"},
    {"final_layer.linear", "proj_out"},
};

constexpr std::string_view kZImageBlocks[] = {"layers.", "noise_refiner.", "context_refiner."};
constexpr Fused kZImageBlock[] = {
    {"attention.qkv", {"attention.to_q", "attention.to_k", "attention.to_v", ""}},
};
constexpr Rule kZImageBlockRules[] = {
    {"attention.out", "attention.to_out.0"},
    {"attention.q_norm", "attention.norm_q"},
    {"attention.k_norm", "attention.norm_k"},
};
constexpr Rule kZImageRoot[] = {
    {"x_embedder", "all_x_embedder.2-1"},
    {"final_layer.linear", "all_final_layer.2-1.linear"},
    {"final_layer.adaLN_modulation.1", "all_final_layer.2-1.adaLN_modulation.1"},
};
// Under one name in both; trainers write adapters with it.
constexpr std::string_view kZImageSame[] = {
    "attention.to_q",     "attention.to_k",  "attention.to_v",  "attention.to_out.0",
    "adaLN_modulation.0", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3"};
constexpr std::string_view kZImageUnread = "norm_final";

constexpr std::string_view kLastNorm = "final_layer.adaLN_modulation.1";

}  // namespace

std::vector<LayerPart> flux_layer(std::string_view module) {
  if (module == kLastNorm) return whole("norm_out.linear", true);
  if (const auto block = block_of(module, "double_blocks.")) {
    const std::string head = cat("transformer_blocks.", block->number, ".");
    return layer(head, block->rest, kFluxDouble, kFluxDoubleRules);
  }
  if (const auto block = block_of(module, "single_blocks.")) {
    const std::string head = cat("single_transformer_blocks.", block->number, ".");
    return layer(head, block->rest, kFluxSingle, kFluxSingleRules);
  }
  return layer("", module, {}, kFluxRoot);
}

std::vector<LayerPart> sd3_layer(std::string_view module, int64_t last) {
  if (module == kLastNorm) return whole("norm_out.linear", true);
  const auto block = block_of(module, "joint_blocks.");
  if (!block) return layer("", module, {}, kSd3Root);
  std::vector<LayerPart> out =
      layer(cat("transformer_blocks.", block->number, "."), block->rest, kSd3Block, kSd3BlockRules);
  const bool text_norm = block->rest == "context_block.adaLN_modulation.1";
  if (block->number == last && text_norm) out.front().halves_swapped = true;
  return out;
}

std::vector<LayerPart> z_image_layer(std::string_view module) {
  if (module == kZImageUnread) return {};
  std::vector<LayerPart> out = layer("", module, {}, kZImageRoot);
  for (const std::string_view prefix : kZImageBlocks) {
    const auto block = block_of(module, prefix);
    if (!block) continue;
    out = layer(cat(prefix, block->number, "."), block->rest, kZImageBlock, kZImageBlockRules);
  }
  return out.empty() ? whole(std::string(module)) : out;
}

std::vector<std::string> flux_layers(int64_t double_blocks, int64_t single_blocks) {
  std::vector<std::string> out{std::string(kLastNorm)};
  add_names("", {}, kFluxRoot, out);
  for (int64_t i = 0; i < double_blocks; ++i) {
    add_names(cat("double_blocks.", i, "."), kFluxDouble, kFluxDoubleRules, out);
  }
  for (int64_t i = 0; i < single_blocks; ++i) {
    add_names(cat("single_blocks.", i, "."), kFluxSingle, kFluxSingleRules, out);
  }
  return out;
}

std::vector<std::string> sd3_layers(int64_t blocks) {
  std::vector<std::string> out{std::string(kLastNorm)};
  add_names("", {}, kSd3Root, out);
  for (int64_t i = 0; i < blocks; ++i) {
    add_names(cat("joint_blocks.", i, "."), kSd3Block, kSd3BlockRules, out);
  }
  return out;
}

std::vector<std::string> z_image_layers(int64_t blocks, int64_t refiner_blocks) {
  std::vector<std::string> out{"t_embedder.mlp.0", "t_embedder.mlp.2", "cap_embedder.1"};
  add_names("", {}, kZImageRoot, out);
  for (const std::string_view prefix : kZImageBlocks) {
    const int64_t count = prefix == kZImageBlocks[0] ? blocks : refiner_blocks;
    for (int64_t i = 0; i < count; ++i) {
      const std::string head = cat(prefix, i, ".");
      add_names(head, kZImageBlock, kZImageBlockRules, out);
      for (const std::string_view name : kZImageSame) out.push_back(cat(head, name));
    }
  }
  return out;
}

}  // namespace rbee::models
