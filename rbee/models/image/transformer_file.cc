#include "rbee/models/image/transformer_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/models/image/transformer_names.h"

namespace rbee::models {
namespace {

using io::TensorEntry;
using nlohmann::json;

constexpr int64_t kMaxBlocks = 1024;
constexpr int64_t kSampleSize = 128;
// Tensors that tell the families apart.
constexpr const char* kFluxMark = "double_blocks.0.img_attn.qkv.weight";
constexpr const char* kSd3Mark = "joint_blocks.0.context_block.attn.qkv.weight";
constexpr const char *kZImageMark = "cap_pad_token", *kZImagePadding = "x_pad_token";
constexpr const char* kPlaces = "pos_embed";

// A file's tensors after a prefix.
class Prefixed {
 public:
  Prefixed(const io::Checkpoint& file, const std::string& prefix, const std::string& source)
      : file_(file), prefix_(prefix), source_(source) {}

  const TensorEntry* find(std::string_view name) const { return file_.find(cat(prefix_, name)); }
  bool has(std::string_view name) const { return find(name) != nullptr; }

  const Shape& shape(std::string_view name) const {
    const TensorEntry* entry = find(name);
    if (entry == nullptr) fail(Code::not_found, source_, "tensor ", prefix_, name, " is missing");
    return entry->shape;
  }
  int64_t size(std::string_view name, int axis) const {
    const Shape& sizes = shape(name);
    check(axis < sizes.rank(), source_, "tensor ", prefix_, name, " is (", sizes, ")");
    return sizes[axis];
  }
  // The number of head0tail, head1tail, ...
  int64_t count(std::string_view head, std::string_view tail) const {
    int64_t n = 0;
    while (n < kMaxBlocks && has(cat(head, n, tail))) ++n;
    return n;
  }

 private:
  const io::Checkpoint& file_;
  const std::string& prefix_;
  const std::string& source_;
};

// Of 128: kind of token 16, row 56, column 56.
json flux_axes(int64_t head_dim) {
  const int64_t kind = head_dim / 8;
  return {kind, (head_dim - kind) / 2, (head_dim - kind) / 2};
}

json flux_config(const Prefixed& tensors) {
  const int64_t head_dim = tensors.size("double_blocks.0.img_attn.norm.query_norm.scale", 0);
  check(head_dim > 0, "FLUX", "heads have no size");
  return {{"in_channels", tensors.size("img_in.weight", 1)},
          {"out_channels", tensors.size("final_layer.linear.weight", 0)},
          {"num_layers", tensors.count("double_blocks.", ".img_attn.qkv.weight")},
          {"num_single_layers", tensors.count("single_blocks.", ".linear1.weight")},
          {"attention_head_dim", head_dim},
          {"num_attention_heads", tensors.size("img_in.weight", 0) / head_dim},
          {"joint_attention_dim", tensors.size("txt_in.weight", 1)},
          {"pooled_projection_dim", tensors.size("vector_in.in_layer.weight", 1)},
          {"guidance_embeds", tensors.has("guidance_in.in_layer.weight")},
          {"axes_dims_rope", flux_axes(head_dim)}};
}

// Without norms of queries no tensor shows a head's width, which is 64 in all models.
int64_t sd3_head_dim(const Prefixed& tensors) {
  constexpr const char* kNorm = "joint_blocks.0.x_block.attn.ln_q.weight";
  constexpr int64_t kUsual = 64;
  return tensors.has(kNorm) ? tensors.size(kNorm, 0) : kUsual;
}

int64_t table_side(const Prefixed& tensors) {
  const Shape& shape = tensors.shape(kPlaces);
  check(shape.rank() >= 2, kPlaces, "its shape is (", shape, ")");
  const int64_t places = shape[shape.rank() - 2];
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(places))));
  check(side * side == places, kPlaces, places, " places are no square");
  return side;
}

json sd3_config(const Prefixed& tensors) {
  const int64_t width = tensors.size("x_embedder.proj.weight", 0);
  const int64_t patch = tensors.size("x_embedder.proj.weight", 2);
  const int64_t layers = tensors.count("joint_blocks.", ".x_block.attn.qkv.weight");
  const int64_t head_dim = sd3_head_dim(tensors);
  constexpr int64_t kMaxPatch = 64;
  check(patch > 0 && patch <= kMaxPatch && head_dim > 0, "Stable Diffusion 3", "patches of ", patch,
        " or heads of ", head_dim, " are none");
  json dual = json::array();
  for (int64_t i = 0; i < layers; ++i) {
    if (tensors.has(cat("joint_blocks.", i, ".x_block.attn2.qkv.weight"))) dual.push_back(i);
  }
  json config = {{"sample_size", kSampleSize},
                 {"patch_size", patch},
                 {"in_channels", tensors.size("x_embedder.proj.weight", 1)},
                 {"out_channels", tensors.size("final_layer.linear.weight", 0) / (patch * patch)},
                 {"num_layers", layers},
                 {"attention_head_dim", head_dim},
                 {"num_attention_heads", width / head_dim},
                 {"joint_attention_dim", tensors.size("context_embedder.weight", 1)},
                 {"caption_projection_dim", width},
                 {"pooled_projection_dim", tensors.size("y_embedder.mlp.0.weight", 1)},
                 {"pos_embed_max_size", table_side(tensors)},
                 {"dual_attention_layers", dual}};
  if (tensors.has("joint_blocks.0.x_block.attn.ln_q.weight")) config["qk_norm"] = "rms_norm";
  return config;
}

// Of 128: place in the text 32, row 48, column 48.
json z_image_axes(int64_t head_dim) {
  const int64_t place = head_dim / 4;
  return {place, (head_dim - place) / 2, (head_dim - place) / 2};
}

// Under ComfyUI's names or diffusers'.
json z_image_config(const Prefixed& tensors) {
  const auto either = [&](const char* one, const char* other) {
    return tensors.has(one) ? one : other;
  };
  const char* const norm =
      either("layers.0.attention.q_norm.weight", "layers.0.attention.norm_q.weight");
  const char* const in = either("x_embedder.weight", "all_x_embedder.2-1.weight");
  const int64_t width = tensors.size("cap_embedder.1.weight", 0);
  constexpr int64_t kUsual = 128, kPixels = 4;
  const int64_t head_dim = tensors.has(norm) ? tensors.size(norm, 0) : kUsual;
  check(head_dim > 0, "Z-Image", "heads have no size");
  return {{"in_channels", tensors.size(in, 1) / kPixels},
          {"dim", width},
          {"n_layers", tensors.count("layers.", ".attention_norm1.weight")},
          {"n_refiner_layers", tensors.count("noise_refiner.", ".attention_norm1.weight")},
          {"n_heads", width / head_dim},
          {"cap_feat_dim", tensors.size("cap_embedder.1.weight", 1)},
          {"qk_norm", tensors.has(norm)},
          {"axes_dims", z_image_axes(head_dim)}};
}

// GGUF files leave out leading sizes of one.
TensorEntry places_of(TensorEntry entry, int64_t side) {
  entry.name = "pos_embed.pos_embed";
  entry.shape = {1, side * side, entry.shape[entry.shape.rank() - 1]};
  return entry;
}

void add_layer(const TensorEntry& entry, const std::vector<LayerPart>& parts, std::string_view leaf,
               std::vector<TensorEntry>& out) {
  for (const LayerPart& part : parts) {
    std::string name = cat(part.module, leaf == "scale" ? ".weight" : cat(".", leaf));
    out.push_back(part.halves_swapped ? halves_swapped(entry, std::move(name))
                                      : rows_of(entry, part.rows, std::move(name)));
  }
}

std::vector<TensorEntry> renamed(const io::Checkpoint& file, const TransformerLayout& layout,
                                 const Prefixed& tensors) {
  const int64_t last = tensors.count("joint_blocks.", ".x_block.attn.qkv.weight") - 1;
  const auto layers = [&](std::string_view module) {
    if (layout.family == ImageFamily::flux) return flux_layer(module);
    if (layout.family == ImageFamily::z_image) return z_image_layer(module);
    return sd3_layer(module, last);
  };
  std::vector<TensorEntry> out;
  for (const TensorEntry& entry : file.tensors()) {
    std::string_view name = entry.name;
    if (!name.starts_with(layout.prefix)) continue;
    name.remove_prefix(layout.prefix.size());
    if (layout.family == ImageFamily::sd3 && name == kPlaces) {
      out.push_back(places_of(entry, table_side(tensors)));
      continue;
    }
    if (layout.family == ImageFamily::z_image && (name == kZImageMark || name == kZImagePadding)) {
      out.push_back(entry);
      out.back().name = name;
      continue;
    }
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) continue;
    add_layer(entry, layers(name.substr(0, dot)), name.substr(dot + 1), out);
  }
  return out;
}

}  // namespace

std::optional<TransformerLayout> find_transformer(const io::Checkpoint& file) {
  for (const char* prefix : {"", "model.diffusion_model."}) {
    if (file.find(cat(prefix, kFluxMark))) return TransformerLayout{ImageFamily::flux, prefix};
    if (file.find(cat(prefix, kSd3Mark))) return TransformerLayout{ImageFamily::sd3, prefix};
    if (file.find(cat(prefix, kZImageMark))) {
      return TransformerLayout{ImageFamily::z_image, prefix};
    }
  }
  return std::nullopt;
}

ModelPart read_transformer(const io::Checkpoint& file, const TransformerLayout& layout,
                           const std::string& source) {
  const Prefixed tensors(file, layout.prefix, source);
  json config;
  const char* class_name = "SD3Transformer2DModel";
  if (layout.family == ImageFamily::flux) {
    config = flux_config(tensors);
    class_name = "FluxTransformer2DModel";
  } else if (layout.family == ImageFamily::z_image) {
    config = z_image_config(tensors);
    class_name = "ZImageTransformer2DModel";
  } else {
    config = sd3_config(tensors);
  }
  return {"transformer",
          class_name,
          io::JsonConfig(config.dump(), source),
          io::Checkpoint::of(renamed(file, layout, tensors), source),
          {}};
}

SchedulerSettings transformer_scheduler(ImageFamily family, const ModelPart& transformer) {
  SchedulerSettings out;
  out.class_name = "FlowMatchEulerDiscreteScheduler";
  out.prediction_type = "flow_prediction";
  out.use_dynamic_shifting =
      family == ImageFamily::flux && transformer.config.flag_or("guidance_embeds", false);
  out.shift = family == ImageFamily::flux ? 1 : 3;
  return out;
}

}  // namespace rbee::models
