#include "rbee/models/image/encoder_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/inferred_config.h"
#include "rbee/models/image/open_clip_file.h"
#include "rbee/models/image/scaled_file.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::TensorEntry;
using nlohmann::json;

constexpr const char* kText = "text_model.";
constexpr const char* kProjection = "text_projection.weight";
constexpr const char* kSdxlPrefix = "conditioner.embedders.1.model.";  // of its OpenCLIP
constexpr const char* kOpenClipMark = "transformer.resblocks.0.attn.in_proj_weight";
// OpenCLIP pads with zeros, which are the token "!".
constexpr const char* kZeroPadding = R"({"pad_token": "!"})";

struct Rename {
  std::string_view from;
  std::string_view to;
};

// llama.cpp's names of an encoder with blocks "enc.blk.<n>."
constexpr Rename kGgufRoot[] = {
    {"token_embd.weight", "shared.weight"},
    {"enc.output_norm.weight", "encoder.final_layer_norm.weight"},
};
constexpr Rename kGgufBlock[] = {
    {"attn_q", "layer.0.SelfAttention.q"},
    {"attn_k", "layer.0.SelfAttention.k"},
    {"attn_v", "layer.0.SelfAttention.v"},
    {"attn_o", "layer.0.SelfAttention.o"},
    {"attn_rel_b", "layer.0.SelfAttention.relative_attention_bias"},
    {"attn_norm", "layer.0.layer_norm"},
    {"ffn_norm", "layer.1.layer_norm"},
    {"ffn_gate", "layer.1.DenseReluDense.wi_0"},
    {"ffn_up", "layer.1.DenseReluDense.wi_1"},
    {"ffn_down", "layer.1.DenseReluDense.wo"},
};

std::string t5_name(std::string_view name) {
  constexpr std::string_view kBlock = "enc.blk.";
  for (const Rename& rule : kGgufRoot) {
    if (name == rule.from) return std::string(rule.to);
  }
  if (!name.starts_with(kBlock)) return std::string(name);
  const std::string_view rest = name.substr(kBlock.size());
  const size_t number = rest.find('.'), leaf = rest.rfind('.');
  if (number == std::string_view::npos || leaf <= number) return std::string(name);
  for (const Rename& rule : kGgufBlock) {
    if (rest.substr(number + 1, leaf - number - 1) != rule.from) continue;
    return cat("encoder.block.", rest.substr(0, number), ".", rule.to, rest.substr(leaf));
  }
  return std::string(name);
}

// The tensors after a prefix, under the names that `rename` gives them.
io::Checkpoint renamed(const io::Checkpoint& file, std::string_view prefix,
                       const std::string& source, const auto& rename) {
  std::vector<TensorEntry> out;
  for (const TensorEntry& entry : file.tensors()) {
    if (!std::string_view(entry.name).starts_with(prefix)) continue;
    out.push_back(entry);
    out.back().name = rename(std::string_view(entry.name).substr(prefix.size()));
  }
  return io::Checkpoint::of(std::move(out), source);
}

std::string same(std::string_view name) {
  return std::string(name);
}

// Shapes of the tensors after "text_model.", or of the projection beside it.
ShapeOf clip_shapes(const io::Checkpoint& tensors) {
  return [&tensors](std::string_view name) -> std::optional<Shape> {
    const TensorEntry* entry = tensors.find(cat(kText, name));
    if (entry == nullptr) entry = tensors.find(name);
    if (entry == nullptr) return std::nullopt;
    return entry->shape;
  };
}

ModelPart clip_part(io::Checkpoint tensors, EncoderRole role, const std::string& source) {
  const char* activation = role == EncoderRole::clip_g ? "gelu" : "quick_gelu";
  io::JsonConfig config =
      clip_config(clip_shapes(tensors), ClipNames::hugging_face, 0, source, activation);
  const bool projected = tensors.find(kProjection) != nullptr;
  ModelPart part{"",
                 projected ? "CLIPTextModelWithProjection" : "CLIPTextModel",
                 std::move(config),
                 std::move(tensors),
                 {}};
  if (role == EncoderRole::clip_g) part.tokenizer.tokenizer_config_json = kZeroPadding;
  return part;
}

// Under OpenCLIP's own names.
ModelPart open_clip_part(const io::Checkpoint& file, const std::string& prefix,
                         const std::string& source) {
  const ShapeOf shapes = [&](std::string_view name) -> std::optional<Shape> {
    const TensorEntry* entry = file.find(cat(prefix, name));
    if (entry == nullptr) return std::nullopt;
    return entry->shape;
  };
  io::JsonConfig config = clip_config(shapes, ClipNames::open_clip, 0, source);
  ModelPart part{"",
                 "CLIPTextModelWithProjection",
                 std::move(config),
                 io::Checkpoint::of(open_clip_tensors(file, prefix), source),
                 {}};
  part.tokenizer.tokenizer_config_json = kZeroPadding;
  return part;
}

Shape matrix(const io::Checkpoint& tensors, const std::string& name) {
  const Shape shape = tensors.require(name).shape;
  check(shape.rank() == 2, name, "its shape is (", shape, "), wanted a matrix");
  return shape;
}

ModelPart t5_part(io::Checkpoint tensors, const std::string& source) {
  const std::string first = "encoder.block.0.layer.0.SelfAttention.";
  const char* shared =
      tensors.find("shared.weight") ? "shared.weight" : "encoder.embed_tokens.weight";
  const Shape table = matrix(tensors, shared);
  const Shape distances = matrix(tensors, first + "relative_attention_bias.weight");
  const Shape query = matrix(tensors, first + "q.weight");
  const Shape gate = matrix(tensors, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight");
  int64_t layers = 0;
  while (tensors.find(cat("encoder.block.", layers, ".layer.0.SelfAttention.q.weight"))) ++layers;
  const json config = {{"vocab_size", table[0]},
                       {"d_model", table[1]},
                       {"d_kv", query[0] / std::max<int64_t>(distances[1], 1)},
                       {"num_heads", distances[1]},
                       {"d_ff", gate[0]},
                       {"num_layers", layers},
                       {"relative_attention_num_buckets", distances[0]},
                       {"feed_forward_proj", "gated-gelu"}};
  return {"", "T5EncoderModel", io::JsonConfig(config.dump(), source), std::move(tensors), {}};
}

// A language model as chats have it. A file of tensors alone is Qwen3.
ModelPart language_part(io::Checkpoint checkpoint, const std::string& source) {
  return {"", "language model", io::JsonConfig("{}", source), std::move(checkpoint), {}};
}

ModelPart language_part(const io::Checkpoint& file, const std::string& prefix,
                        const std::string& source) {
  const ShapeOf shapes = [&](std::string_view name) -> std::optional<Shape> {
    const TensorEntry* entry = file.find(cat(prefix, name));
    if (entry == nullptr) return std::nullopt;
    return entry->shape;
  };
  std::string config = qwen3_config(shapes, source);
  std::vector<TensorEntry> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (!entry.name.starts_with(prefix)) continue;
    tensors.push_back(entry);
    tensors.back().name = entry.name.substr(prefix.size());
  }
  return language_part(io::Checkpoint::of(std::move(tensors), source, std::move(config)), source);
}

bool is_encoder(const io::Checkpoint& file, std::string_view prefix, EncoderRole role) {
  const auto has = [&](std::string_view name) { return file.find(cat(prefix, name)) != nullptr; };
  if (role == EncoderRole::llm) {
    return has("model.layers.0.self_attn.q_proj.weight") || has("blk.0.attn_q.weight");
  }
  if (role == EncoderRole::clip_g && has(kOpenClipMark)) return true;
  if (role != EncoderRole::t5xxl) return has("text_model.embeddings.token_embedding.weight");
  return has("encoder.block.0.layer.0.SelfAttention.q.weight") || has("enc.blk.0.attn_q.weight");
}

ModelPart part_under(const io::Checkpoint& file, const std::string& prefix, ImageFamily family,
                     EncoderRole role, const std::string& source) {
  const bool open_clip = file.find(cat(prefix, kOpenClipMark)) != nullptr;
  ModelPart part = role == EncoderRole::llm ? language_part(file, prefix, source)
                   : role == EncoderRole::t5xxl
                       ? t5_part(renamed(file, prefix, source, t5_name), source)
                   : open_clip ? open_clip_part(file, prefix, source)
                               : clip_part(renamed(file, prefix, source, same), role, source);
  part.name = *encoder_part(family, role);
  return part;
}

std::string prefix_of(EncoderRole role) {
  if (role == EncoderRole::llm) return "text_encoders.qwen3_4b.transformer.";  // ComfyUI's
  return cat("text_encoders.", name(role), ".transformer.");
}

// "text_encoder_3" has its tokenizer in "tokenizer_3" beside it.
TokenizerFiles tokenizer_beside(const fs::path& folder) {
  constexpr std::string_view kEncoder = "text_encoder";
  const std::string own = folder.filename().string();
  if (!own.starts_with(kEncoder)) return read_tokenizer_folder(folder);
  return read_tokenizer_folder(folder.parent_path() /
                               cat("tokenizer", own.substr(kEncoder.size())));
}

ModelPart read_folder(const fs::path& path, ImageFamily family, EncoderRole role) {
  if (role == EncoderRole::llm) {
    ModelPart part = language_part(io::open_part_weights(path), path.string());
    part.tokenizer = tokenizer_beside(path);
    return part;
  }
  const bool projected = family == ImageFamily::sd3 || role == EncoderRole::clip_g;
  const char* clip = projected ? "CLIPTextModelWithProjection" : "CLIPTextModel";
  ModelPart part = read_part_folder(path, role == EncoderRole::t5xxl ? "T5EncoderModel" : clip);
  part.tokenizer = tokenizer_beside(path);
  return part;
}

}  // namespace

const char* name(EncoderRole role) {
  switch (role) {
    case EncoderRole::clip_l:
      return "clip_l";
    case EncoderRole::clip_g:
      return "clip_g";
    case EncoderRole::t5xxl:
      return "t5xxl";
    case EncoderRole::llm:
      return "llm";
  }
  return "";
}

std::optional<std::string> encoder_part(ImageFamily family, EncoderRole role) {
  const bool sd3 = family == ImageFamily::sd3, flux = family == ImageFamily::flux;
  const bool sdxl = family == ImageFamily::sdxl, refiner = family == ImageFamily::sdxl_refiner;
  switch (role) {
    case EncoderRole::clip_l:
      if (sd3 || flux || sdxl || family == ImageFamily::sd1) return "text_encoder";
      break;
    case EncoderRole::clip_g:
      if (sd3 || sdxl || refiner) return "text_encoder_2";
      break;
    case EncoderRole::t5xxl:
      if (sd3) return "text_encoder_3";
      if (flux) return "text_encoder_2";
      break;
    case EncoderRole::llm:
      if (family == ImageFamily::z_image) return "text_encoder";
      break;
  }
  return std::nullopt;
}

std::optional<ModelPart> find_encoder(const io::Checkpoint& file, ImageFamily family,
                                      EncoderRole role, const std::string& source) {
  const std::string prefix = prefix_of(role);
  if (!encoder_part(family, role) || !is_encoder(file, prefix, role)) return std::nullopt;
  return part_under(file, prefix, family, role, source);
}

ModelPart read_encoder(const fs::path& path, ImageFamily family, EncoderRole role) {
  const std::string source = path.string();
  const auto part_name = encoder_part(family, role);
  check(part_name.has_value(), name(role), "models of the family ", name(family),
        " have no such text encoder");
  io::refuse_pickle(path);
  if (fs::is_directory(path)) {
    ModelPart part = read_folder(path, family, role);
    part.name = *part_name;
    return part;
  }
  io::Checkpoint file = open_scaled(path);
  const bool whole = file.format() == io::Checkpoint::Format::gguf || !file.config_json().empty();
  if (role == EncoderRole::llm && whole && is_encoder(file, "", role)) {
    const bool has_words = file.metadata().get_strings("tokenizer.ggml.tokens").has_value();
    ModelPart part = language_part(std::move(file), source);
    part.name = *part_name;
    if (has_words) part.tokenizer.gguf = path;
    return part;
  }
  for (const std::string& prefix : {std::string(), prefix_of(role), std::string(kSdxlPrefix)}) {
    if (!is_encoder(file, prefix, role)) continue;
    ModelPart part = part_under(file, prefix, family, role, source);
    if (file.metadata().get_strings("tokenizer.ggml.tokens")) part.tokenizer.gguf = path;
    return part;
  }
  fail(Code::unsupported, source, "the file has no tensors of the text encoder ", name(role));
}

}  // namespace rbee::models
