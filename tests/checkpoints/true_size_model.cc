#include "tests/checkpoints/true_size_model.h"

#include <sys/mman.h>

#include <algorithm>

namespace rbee::test {
namespace {

using models::ImageFamily;
using models::ModelPart;

// Larger than any tensor; untouched pages take no memory.
std::shared_ptr<const void> untouched_memory() {
  static const std::shared_ptr<const void> memory = [] {
    constexpr size_t kBytes = size_t{1} << 30;
    void* data =
        mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(data != MAP_FAILED, "true_size_model", "no room for addresses");
    return std::shared_ptr<const void>(data, [](const void*) {});
  }();
  return memory;
}

// The tensors of one part under diffusers' names.
class Names {
 public:
  void tensor(const std::string& name, const Shape& shape) {
    io::TensorEntry& entry = entries_.emplace_back();
    entry.name = name;
    entry.dtype = DType::f16;
    entry.shape = shape;
    entry.owner = untouched_memory();
    const auto bytes = static_cast<size_t>(row_bytes(entry.dtype, numel(shape)));
    entry.data = {static_cast<const std::byte*>(entry.owner.get()), bytes};
  }
  void matrix(const std::string& name, int64_t in, int64_t out, bool bias = true) {
    tensor(name + ".weight", {out, in});
    if (bias) tensor(name + ".bias", {out});
  }
  void conv(const std::string& name, int64_t in, int64_t out, int64_t kernel = 3) {
    tensor(name + ".weight", {out, in, kernel, kernel});
    tensor(name + ".bias", {out});
  }
  void norm(const std::string& name, int64_t channels) {
    tensor(name + ".weight", {channels});
    tensor(name + ".bias", {channels});
  }
  void resnet(const std::string& name, int64_t in, int64_t out, int64_t time = 0) {
    norm(name + ".norm1", in);
    conv(name + ".conv1", in, out);
    if (time > 0) matrix(name + ".time_emb_proj", time, out);
    norm(name + ".norm2", out);
    conv(name + ".conv2", out, out);
    if (in != out) conv(name + ".conv_shortcut", in, out, 1);
  }
  void transformer(const std::string& name, int64_t width, int64_t depth, int64_t context);

  io::Checkpoint finish() { return io::Checkpoint::of(std::move(entries_), "true sizes"); }

 private:
  std::vector<io::TensorEntry> entries_;
};

void Names::transformer(const std::string& name, int64_t width, int64_t depth, int64_t context) {
  norm(name + ".norm", width);
  matrix(name + ".proj_in", width, width);
  matrix(name + ".proj_out", width, width);
  for (int64_t i = 0; i < depth; ++i) {
    const std::string block = cat(name, ".transformer_blocks.", i);
    for (const char* part : {".norm1", ".norm2", ".norm3"}) norm(block + part, width);
    for (const auto& [part, in] : {std::pair{".attn1", width}, {".attn2", context}}) {
      matrix(block + part + ".to_q", width, width, false);
      matrix(block + part + ".to_k", in, width, false);
      matrix(block + part + ".to_v", in, width, false);
      matrix(block + part + ".to_out.0", width, width);
    }
    matrix(block + ".ff.net.0.proj", width, 8 * width);
    matrix(block + ".ff.net.2", 4 * width, width);
  }
}

struct UnetShape {
  std::vector<int64_t> channels, depths;  // by level; a depth of 0: no transformer
  int64_t context, added;
};

io::Checkpoint unet(const UnetShape& shape) {
  Names names;
  const std::vector<int64_t>& channels = shape.channels;
  const int64_t first = channels.front(), last = channels.back(), time = 4 * first;
  const size_t levels = channels.size();
  names.conv("conv_in", 4, first);
  names.matrix("time_embedding.linear_1", first, time);
  names.matrix("time_embedding.linear_2", time, time);
  if (shape.added > 0) {
    names.matrix("add_embedding.linear_1", shape.added, time);
    names.matrix("add_embedding.linear_2", time, time);
  }
  std::vector<int64_t> skips = {first};
  int64_t before = first;
  const auto layer = [&](const std::string& block, int j, int64_t in, size_t level) {
    names.resnet(cat(block, ".resnets.", j), in, channels[level], time);
    if (shape.depths[level] == 0) return;
    names.transformer(cat(block, ".attentions.", j), channels[level], shape.depths[level],
                      shape.context);
  };
  for (size_t i = 0; i < levels; ++i) {
    const std::string block = cat("down_blocks.", i);
    for (int j = 0; j < 2; ++j) {
      layer(block, j, before, i);
      skips.push_back(before = channels[i]);
    }
    if (i + 1 == levels) continue;
    names.conv(block + ".downsamplers.0.conv", before, before);
    skips.push_back(before);
  }
  for (int j = 0; j < 2; ++j) names.resnet(cat("mid_block.resnets.", j), last, last, time);
  const int64_t depth = std::max<int64_t>(shape.depths.back(), 1);
  names.transformer("mid_block.attentions.0", last, depth, shape.context);
  for (size_t i = 0; i < levels; ++i) {
    const size_t level = levels - 1 - i;
    const std::string block = cat("up_blocks.", i);
    for (int j = 0; j < 3; ++j) {
      layer(block, j, before + skips.back(), level);
      skips.pop_back();
      before = channels[level];
    }
    if (level > 0) names.conv(block + ".upsamplers.0.conv", before, before);
  }
  names.norm("conv_norm_out", first);
  names.conv("conv_out", first, 4);
  return names.finish();
}

void add_vae_half(Names& names, const std::string& half, bool encodes) {
  std::vector<int64_t> channels = {128, 256, 512, 512};
  if (!encodes) std::ranges::reverse(channels);
  const int64_t deep = 512;
  names.conv(half + ".conv_in", encodes ? 3 : 4, channels.front());
  int64_t before = channels.front();
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string block = cat(half, encodes ? ".down_blocks." : ".up_blocks.", i);
    for (int j = 0; j < (encodes ? 2 : 3); ++j) {
      names.resnet(cat(block, ".resnets.", j), before, channels[i]);
      before = channels[i];
    }
    if (i + 1 == channels.size()) continue;
    names.conv(block + (encodes ? ".downsamplers.0.conv" : ".upsamplers.0.conv"), before, before);
  }
  const std::string middle = half + ".mid_block";
  for (int j = 0; j < 2; ++j) names.resnet(cat(middle, ".resnets.", j), deep, deep);
  names.norm(middle + ".attentions.0.group_norm", deep);
  for (const char* part : {"to_q", "to_k", "to_v", "to_out.0"}) {
    names.matrix(cat(middle, ".attentions.0.", part), deep, deep);
  }
  names.norm(half + ".conv_norm_out", before);
  names.conv(half + ".conv_out", before, encodes ? 8 : 3);
}

io::Checkpoint vae() {
  Names names;
  add_vae_half(names, "encoder", true);
  add_vae_half(names, "decoder", false);
  names.conv("quant_conv", 8, 8, 1);
  names.conv("post_quant_conv", 4, 4, 1);
  return names.finish();
}

io::Checkpoint clip(int64_t width, int64_t layers, int64_t projection) {
  Names names;
  names.tensor("text_model.embeddings.token_embedding.weight", {49408, width});
  names.tensor("text_model.embeddings.position_embedding.weight", {77, width});
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = cat("text_model.encoder.layers.", i);
    for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
      names.matrix(cat(layer, ".self_attn.", part), width, width);
    }
    names.norm(layer + ".layer_norm1", width);
    names.norm(layer + ".layer_norm2", width);
    names.matrix(layer + ".mlp.fc1", width, 4 * width);
    names.matrix(layer + ".mlp.fc2", 4 * width, width);
  }
  names.norm("text_model.final_layer_norm", width);
  if (projection > 0) names.matrix("text_projection", width, projection, false);
  return names.finish();
}

constexpr const char* kClipL = R"({"hidden_size": 768, "num_hidden_layers": 12,
  "num_attention_heads": 12, "intermediate_size": 3072, "projection_dim": 768})";
constexpr const char* kClipG = R"({"hidden_size": 1280, "num_hidden_layers": 32,
  "num_attention_heads": 20, "intermediate_size": 5120, "projection_dim": 1280,
  "hidden_act": "gelu"})";
constexpr const char* kUnet1 = R"({"sample_size": 64, "block_out_channels": [320, 640, 1280, 1280],
  "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D",
    "DownBlock2D"],
  "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D",
    "CrossAttnUpBlock2D"],
  "cross_attention_dim": 768, "attention_head_dim": 8, "layers_per_block": 2})";
constexpr const char* kUnetXl = R"({"sample_size": 128, "block_out_channels": [320, 640, 1280],
  "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
  "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
  "transformer_layers_per_block": [1, 2, 10], "attention_head_dim": [5, 10, 20],
  "cross_attention_dim": 2048, "use_linear_projection": true, "layers_per_block": 2,
  "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
  "projection_class_embeddings_input_dim": 2816})";
constexpr const char* kVae = R"({"block_out_channels": [128, 256, 512, 512],
  "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D", "DownEncoderBlock2D",
    "DownEncoderBlock2D"],
  "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D",
    "UpDecoderBlock2D"],
  "layers_per_block": 2})";

}  // namespace

models::ModelFiles true_size_model(ImageFamily family) {
  models::ModelFiles out;
  out.family = family;
  out.name = models::name(family);
  const auto add = [&](const char* name, const char* class_name, const char* config,
                       io::Checkpoint weights) {
    out.parts.push_back(
        ModelPart{name, class_name, io::JsonConfig(config, name), std::move(weights), {}});
  };
  add("text_encoder", "CLIPTextModel", kClipL, clip(768, 12, 0));
  if (family == ImageFamily::sd1) {
    add("unet", "UNet2DConditionModel", kUnet1,
        unet({.channels = {320, 640, 1280, 1280},
              .depths = {1, 1, 1, 0},
              .context = 768,
              .added = 0}));
  } else {
    add("text_encoder_2", "CLIPTextModelWithProjection", kClipG, clip(1280, 32, 1280));
    add("unet", "UNet2DConditionModel", kUnetXl,
        unet({.channels = {320, 640, 1280}, .depths = {0, 2, 10}, .context = 2048, .added = 2816}));
  }
  add("vae", "AutoencoderKL", kVae, vae());
  return out;
}

}  // namespace rbee::test
