#include "rbee/models/image/original_names.h"

#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "rbee/core/cat.h"

namespace rbee::models {
namespace {

struct Rule {
  std::string_view from, to;
};

// The part of `text` after `head`, if it starts with that.
std::optional<std::string_view> behind(std::string_view text, std::string_view head) {
  if (!text.starts_with(head)) return std::nullopt;
  return text.substr(head.size());
}

// Takes a number and the dot after it off the front of `text`.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

// `name` with the head of the first rule that fits replaced; unchanged if none fits.
std::string renamed(std::string_view name, std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    if (const auto rest = behind(name, rule.from)) return cat(rule.to, *rest);
  }
  return std::string(name);
}

std::string resnet_name(std::string_view name) {
  static constexpr Rule kRules[] = {
      {"in_layers.0.", "norm1."},          {"in_layers.2.", "conv1."},
      {"emb_layers.1.", "time_emb_proj."}, {"out_layers.0.", "norm2."},
      {"out_layers.3.", "conv2."},         {"skip_connection.", "conv_shortcut."},
  };
  return renamed(name, kRules);
}

// rest: "<block>.<layer>.<name>" of input_blocks
std::string down_name(std::string_view rest, const UnetBlockCounts& counts) {
  const auto block = take_number(rest);
  const auto layer = take_number(rest);
  if (!block || !layer) return {};
  if (*block == 0) return cat("conv_in.", rest);
  const int64_t level = (*block - 1) / (counts.resnets + 1);
  const int64_t at = (*block - 1) % (counts.resnets + 1);
  if (const auto op = behind(rest, "op.")) {
    return cat("down_blocks.", level, ".downsamplers.0.conv.", *op);
  }
  if (*layer == 0) return cat("down_blocks.", level, ".resnets.", at, ".", resnet_name(rest));
  return cat("down_blocks.", level, ".attentions.", at, ".", rest);
}

std::string up_name(std::string_view rest, const UnetBlockCounts& counts) {
  const auto block = take_number(rest);
  const auto layer = take_number(rest);
  if (!block || !layer) return {};
  const int64_t level = *block / (counts.resnets + 1), at = *block % (counts.resnets + 1);
  if (*layer == 0) return cat("up_blocks.", level, ".resnets.", at, ".", resnet_name(rest));
  if (const auto conv = behind(rest, "conv.")) {
    return cat("up_blocks.", level, ".upsamplers.0.conv.", *conv);
  }
  return cat("up_blocks.", level, ".attentions.", at, ".", rest);
}

std::string middle_name(std::string_view rest) {
  const auto layer = take_number(rest);
  if (!layer) return {};
  if (*layer == 1) return cat("mid_block.attentions.0.", rest);
  return cat("mid_block.resnets.", *layer / 2, ".", resnet_name(rest));
}

// The names below "encoder." or "decoder." of a VAE.
std::string vae_half_name(std::string_view name, int64_t levels) {
  static constexpr Rule kRules[] = {
      {"mid.block_1.nin_shortcut.", "mid_block.resnets.0.conv_shortcut."},
      {"mid.block_1.", "mid_block.resnets.0."},
      {"mid.block_2.", "mid_block.resnets.1."},
      {"mid.attn_1.norm.", "mid_block.attentions.0.group_norm."},
      {"mid.attn_1.q.", "mid_block.attentions.0.to_q."},
      {"mid.attn_1.k.", "mid_block.attentions.0.to_k."},
      {"mid.attn_1.v.", "mid_block.attentions.0.to_v."},
      {"mid.attn_1.proj_out.", "mid_block.attentions.0.to_out.0."},
      {"norm_out.", "conv_norm_out."},
  };
  const bool up = name.starts_with("up.");
  if (!up && !name.starts_with("down.")) return renamed(name, kRules);
  std::string_view rest = name.substr(name.find('.') + 1);
  const auto level = take_number(rest);
  if (!level) return {};
  // The way up is numbered from the end.
  const std::string block =
      up ? cat("up_blocks.", levels - 1 - *level, ".") : cat("down_blocks.", *level, ".");
  if (const auto conv = behind(rest, "downsample.conv.")) {
    return cat(block, "downsamplers.0.conv.", *conv);
  }
  if (const auto conv = behind(rest, "upsample.conv.")) {
    return cat(block, "upsamplers.0.conv.", *conv);
  }
  const auto inner = behind(rest, "block.");
  if (!inner) return {};
  rest = *inner;
  const auto resnet = take_number(rest);
  if (!resnet) return {};
  static constexpr Rule kShortcut[] = {{"nin_shortcut.", "conv_shortcut."}};
  return cat(block, "resnets.", *resnet, ".", renamed(rest, kShortcut));
}

}  // namespace

std::string unet_name(std::string_view name, const UnetBlockCounts& counts) {
  static constexpr Rule kRules[] = {
      {"time_embed.0.", "time_embedding.linear_1."},
      {"time_embed.2.", "time_embedding.linear_2."},
      {"time_embed.cond_proj.", "time_embedding.cond_proj."},
      {"label_emb.0.0.", "add_embedding.linear_1."},
      {"label_emb.0.2.", "add_embedding.linear_2."},
      {"out.0.", "conv_norm_out."},
      {"out.2.", "conv_out."},
  };
  if (const auto rest = behind(name, "input_blocks.")) return down_name(*rest, counts);
  if (const auto rest = behind(name, "output_blocks.")) return up_name(*rest, counts);
  if (const auto rest = behind(name, "middle_block.")) return middle_name(*rest);
  return renamed(name, kRules);
}

std::string original_unet_module(std::string_view module, const UnetBlockCounts& counts) {
  static constexpr Rule kRoot[] = {
      {"time_embedding.linear_1", "time_embed.0"},
      {"time_embedding.linear_2", "time_embed.2"},
      {"time_embedding.cond_proj", "time_embed.cond_proj"},
      {"add_embedding.linear_1", "label_emb.0.0"},
      {"add_embedding.linear_2", "label_emb.0.2"},
      {"conv_norm_out", "out.0"},
      {"conv_out", "out.2"},
      {"conv_in", "input_blocks.0.0"},
  };
  static constexpr Rule kResnet[] = {
      {"norm1", "in_layers.0"},  {"conv1", "in_layers.2"},  {"time_emb_proj", "emb_layers.1"},
      {"norm2", "out_layers.0"}, {"conv2", "out_layers.3"}, {"conv_shortcut", "skip_connection"},
  };
  const int64_t step = counts.resnets + 1;
  std::string_view rest = module;
  const bool down = rest.starts_with("down_blocks."), up = rest.starts_with("up_blocks.");
  int64_t level = 0;
  if (down || up) {
    rest.remove_prefix(rest.find('.') + 1);
    level = take_number(rest).value_or(0);
  } else if (const auto middle = behind(rest, "mid_block.")) {
    rest = *middle;
  } else {
    return renamed(module, kRoot);
  }
  if (rest == "downsamplers.0.conv") return cat("input_blocks.", (level + 1) * step, ".0.op");
  // After the attention, which every level with an adapter has.
  if (rest == "upsamplers.0.conv") return cat("output_blocks.", (level + 1) * step - 1, ".2.conv");
  const bool attends = rest.starts_with("attentions.");
  rest.remove_prefix(rest.find('.') + 1);
  const int64_t at = take_number(rest).value_or(0);
  const std::string inner = attends ? std::string(rest) : renamed(rest, kResnet);
  if (!down && !up) return cat("middle_block.", attends ? 1 : 2 * at, ".", inner);
  const int64_t block = level * step + at + (down ? 1 : 0);
  return cat(down ? "input_blocks." : "output_blocks.", block, attends ? ".1." : ".0.", inner);
}

std::string vae_name(std::string_view name, int64_t levels) {
  for (const std::string_view half : {"encoder.", "decoder."}) {
    const auto rest = behind(name, half);
    if (!rest) continue;
    const std::string inner = vae_half_name(*rest, levels);
    return inner.empty() ? inner : cat(half, inner);
  }
  return name.starts_with("quant_conv.") || name.starts_with("post_quant_conv.") ? std::string(name)
                                                                                 : std::string();
}

std::string open_clip_name(std::string_view name) {
  static constexpr Rule kRoot[] = {
      {"token_embedding.", "embeddings.token_embedding."},
      {"positional_embedding", "embeddings.position_embedding.weight"},
      {"ln_final.", "final_layer_norm."},
  };
  static constexpr Rule kLayer[] = {
      {"ln_1.", "layer_norm1."}, {"ln_2.", "layer_norm2."},   {"attn.", "self_attn."},
      {"mlp.c_fc.", "mlp.fc1."}, {"mlp.c_proj.", "mlp.fc2."},
  };
  const auto layers = behind(name, "transformer.resblocks.");
  if (!layers) return name == "logit_scale" ? std::string() : renamed(name, kRoot);
  std::string_view rest = *layers;
  const auto layer = take_number(rest);
  return layer ? cat("encoder.layers.", *layer, ".", renamed(rest, kLayer)) : std::string();
}

}  // namespace rbee::models
