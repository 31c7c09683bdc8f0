#include "rbee/models/image/single_file.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/models/image/diffusers_names.h"
#include "rbee/models/image/encoder_file.h"
#include "rbee/models/image/inferred_config.h"
#include "rbee/models/image/open_clip_file.h"
#include "rbee/models/image/original_names.h"
#include "rbee/models/image/scaled_file.h"
#include "rbee/models/image/tiny_file.h"
#include "rbee/models/image/transformer_file.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::TensorEntry;

constexpr const char* kUnet = "model.diffusion_model.";
constexpr const char* kBareUnet = "diffusion_model.";
constexpr const char* kVae = "first_stage_model.";
constexpr const char* kOtherVae = "vae.";        // ComfyUI's and stable-diffusion.cpp's
constexpr const char* kConvertedUnet = "unet.";  // stable-diffusion.cpp's

struct Encoder {
  const char* part;    // its sub-folder in diffusers
  const char* prefix;  // of its names
  ClipNames names;
  int64_t layers_dropped = 0;
  const char* class_name = "CLIPTextModel";
};

// Prefixes do not tell families apart: sgm writes all of them after "conditioner.embedders.0.".
struct Layout {
  ImageFamily family;
  bool labelled;  // whether its UNet reads sizes and pooled states (label_emb)
  std::vector<Encoder> encoders;
};

const std::vector<Layout>& layouts() {
  using enum ClipNames;
  constexpr const char* kProjected = "CLIPTextModelWithProjection";
  // Stable Diffusion 2 reads the states before the last layer.
  static const std::vector<Layout> kLayouts = {
      {ImageFamily::sdxl,
       true,
       {{"text_encoder", "conditioner.embedders.0.transformer.text_model.", hugging_face},
        {"text_encoder_2", "conditioner.embedders.1.model.", open_clip, 0, kProjected}}},
      {ImageFamily::sdxl_refiner,
       true,
       {{"text_encoder_2", "conditioner.embedders.0.model.", open_clip, 0, kProjected}}},
      {ImageFamily::sd2, false, {{"text_encoder", "cond_stage_model.model.", open_clip, 1}}},
      {ImageFamily::sd2, false, {{"text_encoder", "conditioner.embedders.0.model.", open_clip, 1}}},
      {ImageFamily::sd1,
       false,
       {{"text_encoder", "cond_stage_model.transformer.text_model.", hugging_face}}},
      {ImageFamily::sd1,
       false,
       {{"text_encoder", "conditioner.embedders.0.transformer.text_model.", hugging_face}}},
      // Early fine-tunes.
      {ImageFamily::sd1, false, {{"text_encoder", "cond_stage_model.transformer.", hugging_face}}},
      // From diffusers folders, as stable-diffusion.cpp converts them.
      {ImageFamily::sdxl,
       true,
       {{"text_encoder", "text_encoder.", hugging_face},
        {"text_encoder_2", "text_encoder_2.", hugging_face, 0, kProjected}}},
      {ImageFamily::sdxl_refiner,
       true,
       {{"text_encoder_2", "text_encoder_2.", hugging_face, 0, kProjected}}},
      {ImageFamily::sd1, false, {{"text_encoder", "text_encoder.", hugging_face}}},
  };
  return kLayouts;
}

bool has_prefix(const io::Checkpoint& file, std::string_view prefix) {
  return std::ranges::any_of(file.tensors(), [&](const TensorEntry& entry) {
    return std::string_view(entry.name).starts_with(prefix);
  });
}

ShapeOf shapes_under(const io::Checkpoint& file, std::string prefix) {
  return [&file, prefix = std::move(prefix)](std::string_view name) -> std::optional<Shape> {
    const TensorEntry* entry = file.find(cat(prefix, name));
    if (entry == nullptr) return std::nullopt;
    return entry->shape;
  };
}

// The prefix of a UNet's tensors in a file: CompVis' or stable-diffusion.cpp's or, in files of
// one part, none.
std::optional<std::string> unet_prefix(const io::Checkpoint& file) {
  for (const char* prefix : {kUnet, kBareUnet, kConvertedUnet, ""}) {
    if (file.find(cat(prefix, "input_blocks.0.0.weight")) != nullptr) return prefix;
    if (is_diffusers_unet(shapes_under(file, prefix))) return prefix;
  }
  return std::nullopt;
}

bool is_labelled(const io::Checkpoint& file, std::string_view unet) {
  ShapeOf shapes = shapes_under(file, std::string(unet));
  if (is_diffusers_unet(shapes)) shapes = diffusers_unet_shapes(shapes);
  return shapes("label_emb.0.0.weight").has_value();
}

// Null if the file lacks text encoders.
const Layout* find_layout(const io::Checkpoint& file, std::string_view unet) {
  const bool labelled = is_labelled(file, unet);
  for (const Layout& layout : layouts()) {
    if (layout.labelled == labelled && std::ranges::all_of(layout.encoders, [&](const Encoder& e) {
          return has_prefix(file, e.prefix);
        })) {
      return &layout;
    }
  }
  return nullptr;
}

// Tensors after `prefix`, under the names that `rename` gives them.
template <typename Rename>
std::vector<TensorEntry> renamed(const io::Checkpoint& file, std::string_view prefix,
                                 const Rename& rename) {
  std::vector<TensorEntry> out;
  for (const TensorEntry& entry : file.tensors()) {
    const std::string_view full = entry.name;
    if (!full.starts_with(prefix)) continue;
    const std::string name = rename(full.substr(prefix.size()));
    if (name.empty()) continue;
    out.push_back(entry);
    out.back().name = name;
  }
  return out;
}

ModelPart read_encoder(const io::Checkpoint& file, const Encoder& encoder,
                       const std::string& source) {
  const ShapeOf shapes = shapes_under(file, encoder.prefix);
  // Tensors with Hugging Face's names may still be OpenCLIP's: only Stable Diffusion 1's, which is
  // the first of XL, is not.
  constexpr int64_t kClipWidth = 768;
  const auto tokens = shapes("embeddings.token_embedding.weight");
  const bool open_clip =
      encoder.names == ClipNames::open_clip || (tokens && (*tokens)[1] > kClipWidth);
  io::JsonConfig config = clip_config(shapes, encoder.names, encoder.layers_dropped, source,
                                      open_clip ? "gelu" : "quick_gelu");
  const auto same = [](std::string_view name) { return std::string(name); };
  std::vector<TensorEntry> tensors = encoder.names == ClipNames::open_clip
                                         ? open_clip_tensors(file, encoder.prefix)
                                         : renamed(file, encoder.prefix, same);
  const std::string dropped = cat("encoder.layers.", config.integer("num_hidden_layers"), ".");
  std::erase_if(tensors, [&](const TensorEntry& entry) { return entry.name.starts_with(dropped); });
  ModelPart part{encoder.part,
                 encoder.class_name,
                 std::move(config),
                 io::Checkpoint::of(std::move(tensors), source),
                 {}};
  // OpenCLIP pads with zeros, which are the token "!".
  if (open_clip) {
    part.tokenizer.tokenizer_config_json = R"({"pad_token": "!"})";
  }
  return part;
}

// For a UNet without text encoders: by the file's metadata (ComfyUI-GGUF), else by the width of
// the states that it reads.
ImageFamily lone_unet_family(const io::Checkpoint& file, const std::string& source) {
  const std::string said(file.metadata().get_string("general.architecture").value_or(""));
  if (said == "sdxl") return ImageFamily::sdxl;
  if (said == "sd1") return ImageFamily::sd1;
  int64_t width = 0;
  for (const TensorEntry& entry : file.tensors()) {
    if (entry.name.ends_with("attn2.to_k.weight") && entry.shape.rank() == 2)
      width = entry.shape[1];
  }
  constexpr int64_t kOld = 768, kLarge = 2048, kRefiner = 1280;
  if (width == kOld) return ImageFamily::sd1;
  if (width == kLarge) return ImageFamily::sdxl;
  if (width == kRefiner) return ImageFamily::sdxl_refiner;
  fail(Code::unsupported, source, "the file has a denoiser alone, which reads states of ", width,
       " numbers; known are 768 (Stable Diffusion 1), 2048 (XL) and 1280 (XL's refiner); ",
       "give a file that holds the whole model, or a diffusers folder");
}

ModelPart read_unet(const io::Checkpoint& file, std::string_view prefix,
                    const std::string& source) {
  ShapeOf shapes = shapes_under(file, std::string(prefix));
  const bool theirs = is_diffusers_unet(shapes);
  if (theirs) shapes = diffusers_unet_shapes(shapes);
  const UnetBlockCounts counts = unet_block_counts(shapes);
  auto tensors = renamed(file, prefix, [&](std::string_view n) {
    return theirs ? std::string(n) : unet_name(n, counts);
  });
  return {"unet",
          "UNet2DConditionModel",
          unet_config(shapes, source),
          io::Checkpoint::of(std::move(tensors), source),
          {}};
}

ModelPart read_vae(const io::Checkpoint& file, std::string_view prefix, ImageFamily family,
                   const std::string& source) {
  ShapeOf shapes = shapes_under(file, std::string(prefix));
  const bool theirs = is_diffusers_vae(shapes);
  if (theirs) shapes = diffusers_vae_shapes(shapes);
  const int64_t levels = vae_levels(shapes);
  auto tensors = renamed(file, prefix, [&](std::string_view n) {
    return theirs ? std::string(n) : vae_name(n, levels);
  });
  return {"vae",
          "AutoencoderKL",
          vae_config(shapes, family, source),
          io::Checkpoint::of(std::move(tensors), source),
          {}};
}

double deviation(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
  }
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean));
}

// Files do not state it. In Stable Diffusion 2 trained for velocities this bias spreads wider, and
// ComfyUI tells them by that; fine-tunes of XL bring an empty tensor along.
std::string prediction_type(const io::Checkpoint& file, ImageFamily family) {
  constexpr double kWide = 0.09;
  const TensorEntry* bias = nullptr;
  for (const char* name :
       {"model.diffusion_model.output_blocks.11.1.transformer_blocks.0.norm1.bias",
        "unet.up_blocks.3.attentions.2.transformer_blocks.0.norm1.bias"}) {
    if (bias == nullptr) bias = file.find(name);
  }
  const bool readable = bias != nullptr && numel(bias->shape) > 0 && !is_quantized(bias->dtype);
  if (family == ImageFamily::sd2 && readable && deviation(io::read_floats(*bias)) > kWide) {
    return "v_prediction";
  }
  return file.find("v_pred") != nullptr ? "v_prediction" : "epsilon";
}

// Upper or lower case; `word` is lower.
bool is_called(std::string name, std::string_view word) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find(word) != std::string::npos;
}

SchedulerSettings scheduler_of(const io::Checkpoint& file, const ModelFiles& model) {
  SchedulerSettings settings;
  settings.class_name = "EulerDiscreteScheduler";
  settings.steps_offset = 1;
  settings.set_alpha_to_one = false;
  settings.prediction_type = prediction_type(file, model.family);
  // Models of few steps begin at the last timestep, where all is noise. Only their names show it.
  const bool turbo = is_called(model.name, "turbo");
  if (turbo || is_called(model.name, "lightning")) settings.timestep_spacing = "trailing";
  if (turbo && model.family == ImageFamily::sdxl) {
    settings.class_name = "EulerAncestralDiscreteScheduler";
  }
  settings.rescale_betas_zero_snr = file.find("ztsnr") != nullptr;
  return settings;
}

// Nothing if the file has no VAE.
std::optional<std::string_view> vae_prefix(const io::Checkpoint& file) {
  for (const char* prefix : {kVae, kOtherVae, ""}) {
    if (file.find(cat(prefix, "decoder.conv_in.weight")) != nullptr) return prefix;
  }
  return std::nullopt;
}

// A transformer with those of the other parts that the file has.
ModelFiles read_transformer_file(const io::Checkpoint& file, const TransformerLayout& layout,
                                 const fs::path& path) {
  const std::string source = path.string();
  ModelFiles files;
  files.family = layout.family;
  files.name = path.stem().string();
  for (const EncoderRole role : kEncoderRoles) {
    auto encoder = find_encoder(file, layout.family, role, source);
    if (encoder) files.parts.push_back(std::move(*encoder));
  }
  files.parts.push_back(read_transformer(file, layout, source));
  const auto vae = vae_prefix(file);
  if (vae) files.parts.push_back(read_vae(file, *vae, layout.family, source));
  files.scheduler = transformer_scheduler(layout.family, files.require("transformer"));
  return files;
}

// With text encoders under the names of diffusers' folders.
io::Checkpoint open_file(const fs::path& path) {
  io::Checkpoint file = open_scaled(path);
  if (!has_prefix(file, "te.") && !has_prefix(file, "text_encoder")) return file;
  std::vector<TensorEntry> tensors(file.tensors().begin(), file.tensors().end());
  for (TensorEntry& entry : tensors) entry.name = encoder_folder_name(entry.name);
  return io::Checkpoint::of(std::move(tensors), path.string());
}

// Stable Diffusion 1 and 2 have one encoder each; its width tells them apart if names do not.
ImageFamily family_of(const io::Checkpoint& file, const Layout& layout) {
  constexpr int64_t kWide = 1024;
  const TensorEntry* tokens =
      file.find(cat(layout.encoders.front().prefix, "embeddings.token_embedding.weight"));
  const bool wide = tokens != nullptr && tokens->shape.rank() == 2 && tokens->shape[1] == kWide;
  return layout.family == ImageFamily::sd1 && wide ? ImageFamily::sd2 : layout.family;
}

// Some of a family's text encoders, if others are given besides.
std::vector<ModelPart> read_some_encoders(const io::Checkpoint& file, ImageFamily family,
                                          const std::string& source) {
  std::vector<ModelPart> out;
  for (const Layout& layout : layouts()) {
    if (layout.family != family) continue;
    for (const Encoder& encoder : layout.encoders) {
      const bool known = std::ranges::count(out, encoder.part, &ModelPart::name) > 0;
      if (!known && has_prefix(file, encoder.prefix)) {
        out.push_back(read_encoder(file, encoder, source));
      }
    }
  }
  return out;
}

}  // namespace

ModelFiles read_single_file(const fs::path& path) {
  const io::Checkpoint file = open_file(path);
  const std::string source = path.string();
  if (const auto transformer = find_transformer(file)) {
    return read_transformer_file(file, *transformer, path);
  }
  const std::optional<std::string> unet = unet_prefix(file);
  if (!unet) {
    fail(Code::unsupported, source, "the file is no whole model of a known family; known are ",
         "Stable Diffusion 1, 2, XL, XL's refiner and 3, FLUX and Z-Image");
  }
  ModelFiles files;
  files.name = path.stem().string();
  if (const Layout* layout = find_layout(file, *unet)) {
    files.family = family_of(file, *layout);
    for (const Encoder& encoder : layout->encoders) {
      files.parts.push_back(read_encoder(file, encoder, source));
    }
  } else {
    files.family = lone_unet_family(file, source);
    files.parts = read_some_encoders(file, files.family, source);
  }
  files.parts.push_back(read_unet(file, *unet, source));
  const auto vae = vae_prefix(file);
  if (vae) files.parts.push_back(read_vae(file, *vae, files.family, source));
  files.scheduler = scheduler_of(file, files);
  return files;
}

ModelPart read_vae_file(const fs::path& path, ImageFamily family) {
  if (auto tiny = find_tiny_file(path)) return std::move(*tiny);
  const io::Checkpoint file = open_scaled(path);
  return read_vae(file, vae_prefix(file).value_or(""), family, path.string());
}

}  // namespace rbee::models
