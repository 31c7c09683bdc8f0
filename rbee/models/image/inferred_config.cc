#include "rbee/models/image/inferred_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"

namespace rbee::models {
namespace {

using nlohmann::json;

constexpr int64_t kMaxBlocks = 1024;

Shape require(const ShapeOf& shape_of, const std::string& name) {
  const auto shape = shape_of(name);
  if (!shape) fail(Code::not_found, "load_image_model", "tensor ", name, " is missing");
  return *shape;
}

// The number of prefix0suffix, prefix1suffix, ...
int64_t count(const ShapeOf& shape_of, std::string_view prefix, std::string_view suffix) {
  int64_t n = 0;
  while (n < kMaxBlocks && shape_of(cat(prefix, n, suffix))) ++n;
  return n;
}

int64_t transformer_depth(const ShapeOf& shape_of, const std::string& block) {
  return count(shape_of, block + ".1.transformer_blocks.", ".norm1.weight");
}

int64_t unet_levels(const ShapeOf& shape_of) {
  int64_t levels = 1;
  for (int64_t i = 1; i < kMaxBlocks; ++i) {
    if (shape_of(cat("input_blocks.", i, ".0.op.weight")))
      ++levels;
    else if (!shape_of(cat("input_blocks.", i, ".0.in_layers.0.weight")))
      break;
  }
  return levels;
}

// The way up mirrors the way down.
void add_levels(const ShapeOf& shape_of, json& config) {
  const int64_t step = unet_block_counts(shape_of).resnets + 1, levels = unet_levels(shape_of);
  const int64_t middle = transformer_depth(shape_of, "middle_block");
  constexpr int64_t kHeadDim = 64, kOldHeads = 8, kOldContext = 768;
  int64_t context = kOldContext;
  json down = json::array(), up = json::array(), depths = json::array();
  json channels = json::array(), heads = json::array();
  for (int64_t level = 0; level < levels; ++level) {
    const std::string block = cat("input_blocks.", 1 + level * step);
    channels.push_back(require(shape_of, block + ".0.out_layers.3.weight")[0]);
    const int64_t depth = transformer_depth(shape_of, block);
    down.push_back(depth > 0 ? "CrossAttnDownBlock2D" : "DownBlock2D");
    up.insert(up.begin(), depth > 0 ? "CrossAttnUpBlock2D" : "UpBlock2D");
    // The middle takes the last level's depth, which matters nowhere else if that level has none.
    depths.push_back(depth > 0 ? depth : std::max<int64_t>(middle, 1));
    const auto keys = shape_of(block + ".1.transformer_blocks.0.attn2.to_k.weight");
    if (keys) context = (*keys)[1];
  }
  for (const json& width : channels) {
    heads.push_back(context == kOldContext ? kOldHeads
                                           : std::max<int64_t>(1, width.get<int64_t>() / kHeadDim));
  }
  config["block_out_channels"] = channels;
  config["down_block_types"] = down;
  config["up_block_types"] = up;
  config["transformer_layers_per_block"] = depths;
  config["attention_head_dim"] = heads;
  config["cross_attention_dim"] = context;
  config["layers_per_block"] = step - 1;
  if (middle == 0) config["mid_block_type"] = nullptr;
}

struct LatentScale {
  double scaling, shift;
};

// All except the out_channels.
json unet_settings(const ShapeOf& shape_of) {
  json config;
  add_levels(shape_of, config);
  config["in_channels"] = require(shape_of, "input_blocks.0.0.weight")[1];
  if (const auto guidance = shape_of("time_embed.cond_proj.weight")) {
    config["time_cond_proj_dim"] = (*guidance)[1];
  }
  if (const auto added = shape_of("label_emb.0.0.weight")) {
    constexpr int64_t kSizeWidth = 256;
    config["addition_embed_type"] = "text_time";
    config["addition_time_embed_dim"] = kSizeWidth;
    config["projection_class_embeddings_input_dim"] = (*added)[1];
  }
  return config;
}

LatentScale latent_scale(ImageFamily family) {
  switch (family) {
    case ImageFamily::sd1:
    case ImageFamily::sd2:
      return {0.18215, 0};
    case ImageFamily::sdxl:
    case ImageFamily::sdxl_refiner:
      return {0.13025, 0};
    case ImageFamily::sd3:
      return {1.5305, 0.0609};
    case ImageFamily::flux:
    case ImageFamily::z_image:
      return {0.3611, 0.1159};
  }
  return {1, 0};
}

}  // namespace

UnetBlockCounts unet_block_counts(const ShapeOf& shape_of) {
  int64_t resnets = 0;
  while (shape_of(cat("input_blocks.", resnets + 1, ".0.in_layers.0.weight"))) ++resnets;
  if (resnets == 0) {
    fail(Code::not_found, "load_image_model",
         "tensor input_blocks.1.0.in_layers.0.weight is missing");
  }
  return {resnets};
}

io::JsonConfig unet_config(const ShapeOf& shape_of, const std::string& source) {
  json config = unet_settings(shape_of);
  config["out_channels"] = require(shape_of, "out.2.weight")[0];
  return {config.dump(), source};
}

io::JsonConfig control_config(const ShapeOf& shape_of, int64_t hints, const std::string& source) {
  json config = unet_settings(shape_of);
  config["conditioning_embedding_out_channels"] = json::array();
  for (int64_t i = 0; i + 1 < hints; i += 2) {
    const Shape shape = require(shape_of, cat("input_hint_block.", 2 * i, ".weight"));
    config["conditioning_embedding_out_channels"].push_back(shape[0]);
  }
  return {config.dump(), source};
}

int64_t vae_levels(const ShapeOf& shape_of) {
  return count(shape_of, "decoder.up.", ".block.0.conv1.weight");
}

io::JsonConfig vae_config(const ShapeOf& shape_of, ImageFamily family, const std::string& source) {
  json config;
  const int64_t levels = vae_levels(shape_of);
  if (levels == 0) {
    fail(Code::not_found, source, "it has no VAE: tensor decoder.up.0.block.0.conv1.weight is ",
         "missing");
  }
  config["block_out_channels"] = json::array();
  for (int64_t i = 0; i < levels; ++i) {
    config["block_out_channels"].push_back(
        require(shape_of, cat("decoder.up.", i, ".block.0.conv1.weight"))[0]);
  }
  config["layers_per_block"] = count(shape_of, "decoder.up.0.block.", ".conv1.weight") - 1;
  config["latent_channels"] = require(shape_of, "decoder.conv_in.weight")[1];
  config["mid_block_add_attention"] = shape_of("decoder.mid.attn_1.q.weight").has_value();
  config["use_quant_conv"] = shape_of("quant_conv.weight").has_value();
  config["use_post_quant_conv"] = shape_of("post_quant_conv.weight").has_value();
  config["force_upcast"] = family == ImageFamily::sdxl || family == ImageFamily::sdxl_refiner;
  const LatentScale scale = latent_scale(family);
  config["scaling_factor"] = scale.scaling;
  config["shift_factor"] = scale.shift;
  return {config.dump(), source};
}

io::JsonConfig clip_config(const ShapeOf& shape_of, ClipNames names, int64_t layers_dropped,
                           const std::string& source, std::string_view activation) {
  const bool open = names == ClipNames::open_clip;
  const std::string layers = open ? "transformer.resblocks." : "encoder.layers.";
  const Shape tokens =
      require(shape_of, open ? "token_embedding.weight" : "embeddings.token_embedding.weight");
  const Shape positions =
      require(shape_of, open ? "positional_embedding" : "embeddings.position_embedding.weight");
  const Shape mlp = require(shape_of, layers + (open ? "0.mlp.c_fc.weight" : "0.mlp.fc1.weight"));
  constexpr int64_t kHeadDim = 64;
  json config;
  config["vocab_size"] = tokens[0];
  config["hidden_size"] = tokens[1];
  config["max_position_embeddings"] = positions[0];
  config["intermediate_size"] = mlp[0];
  config["num_hidden_layers"] =
      count(shape_of, layers, open ? ".ln_1.weight" : ".layer_norm1.weight") - layers_dropped;
  config["num_attention_heads"] = std::max<int64_t>(1, tokens[1] / kHeadDim);
  config["hidden_act"] = !activation.empty() ? activation : open ? "gelu" : "quick_gelu";
  config["eos_token_id"] = tokens[0] - 1;
  const auto projection = shape_of(open ? "text_projection" : "text_projection.weight");
  if (projection) config["projection_dim"] = (*projection)[open ? 1 : 0];
  return {config.dump(), source};
}

std::string qwen3_config(const ShapeOf& shape_of, const std::string& source) {
  const std::string first = "model.layers.0.self_attn.";
  const auto norm = shape_of(first + "q_norm.weight");
  const bool known = norm && norm->rank() == 1 && (*norm)[0] > 0;
  if (!known) {
    fail(Code::unsupported, source, "tensor ", first,
         "q_norm.weight is missing: the language model ",
         "is no Qwen3; give its folder, with its config.json, or a GGUF file");
  }
  const int64_t head = (*norm)[0];
  const Shape tokens = require(shape_of, "model.embed_tokens.weight");
  // What no tensor shows is as in all published models.
  const json config = {
      {"model_type", "qwen3"},
      {"vocab_size", tokens[0]},
      {"hidden_size", tokens[tokens.rank() - 1]},
      {"num_hidden_layers", count(shape_of, "model.layers.", ".self_attn.q_proj.weight")},
      {"num_attention_heads", require(shape_of, first + "q_proj.weight")[0] / head},
      {"num_key_value_heads", require(shape_of, first + "k_proj.weight")[0] / head},
      {"head_dim", head},
      {"intermediate_size", require(shape_of, "model.layers.0.mlp.gate_proj.weight")[0]},
      {"max_position_embeddings", 40960},
      {"rms_norm_eps", 1e-6},
      {"rope_theta", 1000000},
      {"tie_word_embeddings", !shape_of("lm_head.weight")}};
  return config.dump();
}

}  // namespace rbee::models
