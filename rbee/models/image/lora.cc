#include "rbee/models/image/lora.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/original_names.h"
#include "rbee/models/image/transformer_names.h"
#include "rbee/ops/matmul.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

enum class Role : uint8_t { up, down };

struct Ending {
  std::string_view text;
  Role role;
};

constexpr Ending kEndings[] = {
    {".lora_up.weight", Role::up},
    {".lora_down.weight", Role::down},
    {".lora.up.weight", Role::up},
    {".lora.down.weight", Role::down},
    {"_lora.up.weight", Role::up},
    {"_lora.down.weight", Role::down},
    {".lora_linear_layer.up.weight", Role::up},
    {".lora_linear_layer.down.weight", Role::down},
    {".lora_B.weight", Role::up},
    {".lora_A.weight", Role::down},
    {".lora_B.default.weight", Role::up},
    {".lora_A.default.weight", Role::down},
};

std::string underscored(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

// One adapter's tensors of a layer, under the name that the file calls the layer by.
struct Layer {
  const TensorEntry* up = nullptr;
  const TensorEntry* down = nullptr;
  std::optional<float> alpha;
};

struct LayerKeys {
  std::map<std::string, Layer> layers;
  std::vector<std::string> unknown;  // keys of no known form
};

LayerKeys sort_keys(const io::Checkpoint& file) {
  constexpr std::string_view kAlpha = ".alpha";
  LayerKeys out;
  for (const TensorEntry& entry : file.tensors()) {
    const std::string_view name = entry.name;
    const auto ending = std::ranges::find_if(
        kEndings, [&](const Ending& each) { return name.ends_with(each.text); });
    if (ending != std::end(kEndings)) {
      Layer& layer = out.layers[std::string(name.substr(0, name.size() - ending->text.size()))];
      (ending->role == Role::up ? layer.up : layer.down) = &entry;
    } else if (name.ends_with(kAlpha) && numel(entry.shape) == 1) {
      out.layers[std::string(name.substr(0, name.size() - kAlpha.size()))].alpha =
          io::read_floats(entry).front();
    } else {
      out.unknown.push_back(entry.name);
    }
  }
  return out;
}

// The names that files call a layer of the UNet by.
std::vector<std::string> unet_spellings(const std::string& module, const UnetBlockCounts& counts) {
  const std::string original = original_unet_module(module, counts);
  std::vector<std::string> out = {"lora_unet_" + underscored(module),
                                  "lora_unet_" + underscored(original),
                                  "unet." + module,
                                  module,
                                  "base_model.model." + module,
                                  "diffusion_model." + original};
  // diffusers before 0.22: "attn1.processor.to_out" for "attn1.to_out.0"
  const size_t dot = module.rfind(".to_");
  if (dot != std::string::npos) {
    const std::string layer = module.ends_with(".0") ? module.substr(0, module.size() - 2) : module;
    out.push_back(cat("unet.", module.substr(0, dot), ".processor", layer.substr(dot)));
  }
  return out;
}

// The same of the `index`-th text encoder.
std::vector<std::string> text_spellings(const std::string& part, size_t index,
                                        const std::string& module) {
  constexpr std::string_view kModel = "text_model.";
  const std::string plain = module.starts_with(kModel) ? module.substr(kModel.size()) : module;
  const std::string joined = underscored(cat(kModel, plain));
  std::vector<std::string> out = {cat("lora_te", index + 1, "_", joined), cat(part, ".", plain),
                                  cat(part, ".", kModel, plain)};
  if (index == 0) out.push_back("lora_te_" + joined);
  return out;
}

// The names that files call a layer of a transformer by, in diffusers' words.
std::vector<std::string> transformer_spellings(const std::string& module) {
  return {"transformer." + module, module, "base_model.model." + module,
          "lora_transformer_" + underscored(module), "lora_unet_" + underscored(module)};
}

// The same in its authors' words, in which one adapter may be for several layers.
struct OriginalLayer {
  std::string name;
  std::vector<LayerPart> parts;
};

std::vector<OriginalLayer> original_layers(const ModelPart& part) {
  const int64_t blocks = part.config.integer("num_layers", {0, 1024});
  std::vector<OriginalLayer> out;
  if (part.class_name == "FluxTransformer2DModel") {
    const int64_t singles = part.config.integer("num_single_layers", {0, 1024});
    for (const std::string& name : flux_layers(blocks, singles)) {
      out.push_back({name, flux_layer(name)});
    }
  } else {
    for (const std::string& name : sd3_layers(blocks)) {
      out.push_back({name, sd3_layer(name, blocks - 1)});
    }
  }
  return out;
}

Tensor as_matrix(const TensorEntry& entry, Device& device) {
  const std::vector<float> values = io::read_floats(entry);
  const int64_t rows = entry.shape[0];
  return from_host<float>(values, {rows, numel(entry.shape) / std::max<int64_t>(rows, 1)}, device);
}

// Before anything is changed, so that a model is not left between two sets of adapters.
void check_fit(const std::string& path, const TensorEntry& up_part, const TensorEntry& down_part,
               const std::string& name, const Shape& shape) {
  const Shape &up = up_part.shape, &down = down_part.shape;
  const int64_t rank = down[0];
  const bool fits = numel(up) == up[0] * rank && up[0] == shape[0] &&
                    up[0] * (numel(down) / rank) == numel(shape);
  check(fits, path, up_part.name, " is (", up, "), ", down_part.name, " (", down,
        "), which is no change of ", name, " (", shape, "): the adapter is for another model");
}

void report_unknown(const LoraSource& source, const std::vector<std::string>& unknown,
                    size_t used) {
  if (unknown.empty()) return;
  constexpr size_t kNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, unknown.size()); ++i) {
    names += cat(names.empty() ? "" : ", ", unknown[i]);
  }
  log(LogLevel::warn, "an adapter has keys that the model has no layer for",
      {{"file", source.path.string()},
       {"layers used", cat(used)},
       {"unknown", cat(unknown.size())},
       {"first", names}});
}

}  // namespace

bool LoraPatch::touches(std::string_view name) const {
  return updates_.contains(std::string(name));
}

void LoraPatch::apply(std::string_view name, const Shape& /*shape*/,
                      std::span<float> values) const {
  for (const Update& update : updates_.at(std::string(name))) {
    const Tensor up = as_matrix(update.up, *device_), down = as_matrix(update.down, *device_);
    const std::vector<float> change = matmul(up, down).to_host<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] += update.factor * change[i];
  }
}

LoraSet::LoraSet(const ModelFiles& files, std::span<const LoraSource> sources, Device& device) {
  if (sources.empty()) return;
  const Targets targets = find_targets(files);
  for (const LoraSource& source : sources) read(source, targets, device);
}

LoraSet::Targets LoraSet::find_targets(const ModelFiles& files) {
  constexpr std::string_view kWeight = ".weight";
  Targets targets;
  size_t text_encoders = 0;
  for (const ModelPart& part : files.parts) {
    if (part.name == "transformer") add_transformer(part, targets);
    const bool unet = part.name == "unet", text = part.name.starts_with("text_encoder");
    if (!unet && !text) continue;
    const auto resnets = part.config.is_list("layers_per_block")
                             ? part.config.integers("layers_per_block").front()
                             : part.config.integer_or("layers_per_block", 2);
    for (const TensorEntry& entry : part.weights.tensors()) {
      if (!entry.name.ends_with(kWeight) || entry.shape.rank() < 2) continue;
      const std::string module = entry.name.substr(0, entry.name.size() - kWeight.size());
      const auto spellings = unet ? unet_spellings(module, {.resnets = resnets})
                                  : text_spellings(part.name, text_encoders, module);
      for (const std::string& spelling : spellings) {
        targets.try_emplace(spelling, 1, Target{part.name, entry.name, entry.shape, {}});
      }
    }
    if (text) ++text_encoders;
  }
  return targets;
}

void LoraSet::add_transformer(const ModelPart& part, Targets& targets) {
  constexpr std::string_view kWeight = ".weight";
  for (const TensorEntry& entry : part.weights.tensors()) {
    if (!entry.name.ends_with(kWeight) || entry.shape.rank() < 2) continue;
    const std::string module = entry.name.substr(0, entry.name.size() - kWeight.size());
    for (const std::string& spelling : transformer_spellings(module)) {
      targets.try_emplace(spelling, 1, Target{part.name, entry.name, entry.shape, {}});
    }
  }
  for (const OriginalLayer& layer : original_layers(part)) {
    std::vector<Target> found;
    for (const LayerPart& piece : layer.parts) {
      const TensorEntry* entry = part.weights.find(cat(piece.module, kWeight));
      if (entry == nullptr || entry->shape.rank() < 2 || piece.halves_swapped) continue;
      found.push_back({part.name, entry->name, entry->shape, piece.rows});
    }
    if (found.size() != layer.parts.size() || found.empty()) continue;
    for (const std::string& spelling :
         {"lora_unet_" + underscored(layer.name), "diffusion_model." + layer.name, layer.name}) {
      targets.try_emplace(spelling, found);
    }
  }
}

void LoraSet::read(const LoraSource& source, const Targets& targets, Device& device) {
  const std::string path = source.path.string();
  check(std::isfinite(source.weight), path, "its strength is ", source.weight);
  io::refuse_pickle(source.path);
  const io::Checkpoint file = io::Checkpoint::open(source.path);
  LayerKeys keys = sort_keys(file);
  size_t used = 0;
  for (const auto& [name, layer] : keys.layers) {
    const auto target = targets.find(name);
    if (target == targets.end() || layer.up == nullptr || layer.down == nullptr) {
      keys.unknown.push_back(name);
      continue;
    }
    const int64_t rank = layer.down->shape.rank() > 0 ? layer.down->shape[0] : 0;
    check(rank > 0 && layer.up->shape.rank() >= 2 && layer.down->shape.rank() >= 2, path,
          layer.down->name, " is (", layer.down->shape, "), which has no rank");
    const float alpha = layer.alpha.value_or(static_cast<float>(rank));
    for (const Target& each : target->second) {
      const TensorEntry up = rows_of(*layer.up, each.rows, layer.up->name);
      check_fit(path, up, *layer.down, each.tensor, each.shape);
      LoraPatch& patch = patches_.try_emplace(each.part, device).first->second;
      patch.add(each.tensor, {up, *layer.down, source.weight * alpha / static_cast<float>(rank)});
    }
    ++used;
  }
  check(used > 0, path, "none of its ", keys.unknown.size(), " layers is one of this ",
        "model's: it is for another family, or no adapter");
  report_unknown(source, keys.unknown, used);
}

std::vector<std::string> LoraSet::parts() const {
  std::vector<std::string> out;
  for (const auto& [part, patch] : patches_) out.push_back(part);
  return out;
}

const nn::WeightPatch* LoraSet::patch(const std::string& part) const {
  const auto found = patches_.find(part);
  return found == patches_.end() ? nullptr : &found->second;
}

}  // namespace rbee::models
