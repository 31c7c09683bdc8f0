#include "rbee/models/image/lora.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/io/json_parse.h"
#include "rbee/io/safetensors_reader.h"
#include "rbee/models/image/original_names.h"
#include "rbee/models/image/transformer_names.h"
#include "rbee/models/peft_config.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

struct Ending {
  std::string_view text;
  std::string_view role;  // see AdapterLayer
};

constexpr std::string_view kOther;  // a kind that is not supported

constexpr Ending kEndings[] = {
    {".lora_up.weight", "up"},
    {".lora_down.weight", "down"},
    {".lora_mid.weight", "mid"},
    {".lora.up.weight", "up"},
    {".lora.down.weight", "down"},
    {"_lora.up.weight", "up"},
    {"_lora.down.weight", "down"},
    {".lora_linear_layer.up.weight", "up"},
    {".lora_linear_layer.down.weight", "down"},
    {".lora_B.weight", "up"},
    {".lora_A.weight", "down"},
    {".lora_B.bias", "up_bias"},
    {".hada_w1_a", "hada_w1_a"},
    {".hada_w1_b", "hada_w1_b"},
    {".hada_w2_a", "hada_w2_a"},
    {".hada_w2_b", "hada_w2_b"},
    {".hada_t1", "hada_t1"},
    {".hada_t2", "hada_t2"},
    {".lokr_w1", "lokr_w1"},
    {".lokr_w1_a", "lokr_w1_a"},
    {".lokr_w1_b", "lokr_w1_b"},
    {".lokr_w2", "lokr_w2"},
    {".lokr_w2_a", "lokr_w2_a"},
    {".lokr_w2_b", "lokr_w2_b"},
    {".lokr_t1", "lokr_t1"},
    {".lokr_t2", "lokr_t2"},
    {".a1.weight", "a1"},
    {".a2.weight", "a2"},
    {".b1.weight", "b1"},
    {".b2.weight", "b2"},
    {".oft_blocks", "oft_blocks"},
    {".rescale", "rescale"},
    {".oft_R.weight", kOther},  // PEFT's rotations, of inputs
    {".diff", "diff"},
    {".w_norm", "diff"},  // of norms
    {".diff_b", "diff_b"},
    {".b_norm", "diff_b"},
    {".dora_scale", "dora_scale"},
    {".lora_magnitude_vector", "magnitude"},
    {".lora_magnitude_vector.weight", "magnitude"},
    {".on_input", "on_input"},
    {".weight", "scale"},  // after the longer ones
};

constexpr std::string_view kWeight = ".weight", kBias = ".bias";
constexpr std::string_view kTextEncoder = "text_encoder";  // how parts are called
const std::string kPeft = "base_model.model.";             // before the names of PEFT's own files

std::string underscored(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

struct LayerKeys {
  std::map<std::string, AdapterLayer> layers;  // by the name that the file calls them
  std::vector<std::string> unknown;            // keys of no known form
};

// PEFT writes an adapter's name into its keys, "...to_q.lora_A.default.weight", if the model is
// saved as it is in memory.
std::string without_adapter_name(const std::string& key) {
  for (const std::string_view leaf : {kWeight, kBias}) {
    if (!key.ends_with(leaf)) continue;
    for (const std::string_view mark :
         {".lora_A.", ".lora_B.", ".lora_magnitude_vector.", ".oft_R."}) {
      const size_t at = key.rfind(mark);
      if (at == std::string::npos || at + mark.size() + leaf.size() > key.size()) continue;
      return cat(key.substr(0, at + mark.size() - 1), leaf);
    }
  }
  return key;
}

LayerKeys sort_keys(const io::Checkpoint& file, const std::string& path) {
  constexpr std::string_view kAlpha = ".alpha";
  LayerKeys out;
  for (const TensorEntry& entry : file.tensors()) {
    const std::string own = without_adapter_name(entry.name);
    const std::string_view name = own;
    const auto ending = std::ranges::find_if(
        kEndings, [&](const Ending& each) { return name.ends_with(each.text); });
    if (ending != std::end(kEndings) && ending->role != kOther) {
      AdapterLayer& layer =
          out.layers[std::string(name.substr(0, name.size() - ending->text.size()))];
      const bool fresh = layer.tensors.emplace(ending->role, &entry).second;
      check(fresh, path, "it has several adapters: ", entry.name, " is another one's");
    } else if (name.ends_with(kAlpha) && numel(entry.shape) == 1) {
      out.layers[std::string(name.substr(0, name.size() - kAlpha.size()))].alpha =
          io::read_floats(entry).front();
    } else {
      out.unknown.push_back(entry.name);
    }
  }
  return out;
}

// The names of a layer of the UNet in files.
std::vector<std::string> unet_spellings(const std::string& module, const UnetBlockCounts& counts) {
  const std::string original = original_unet_module(module, counts);
  std::vector<std::string> out = {"lora_unet_" + underscored(module),
                                  "lora_unet_" + underscored(original),
                                  "unet." + module,
                                  module,
                                  kPeft + module,
                                  kPeft + "unet." + module,
                                  "lora_unet." + module,  // OneTrainer
                                  "diffusion_model." + original,
                                  "model.diffusion_model." + original,
                                  "lycoris_" + underscored(module)};
  // diffusers before 0.22: "attn1.processor.to_out" for "attn1.to_out.0"
  const size_t dot = module.rfind(".to_");
  if (dot != std::string::npos) {
    const std::string layer = module.ends_with(".0") ? module.substr(0, module.size() - 2) : module;
    const std::string processor = cat(module.substr(0, dot), ".processor", layer.substr(dot));
    out.insert(out.end(), {"unet." + processor, processor});
  }
  return out;
}

// The same for a T5, the `index`-th text encoder. kohya's scripts call it the third one in any
// model; older ones call FLUX's the second.
std::vector<std::string> t5_spellings(const std::string& part, size_t index,
                                      const std::string& module) {
  const std::string joined = underscored(module);
  return {"lora_te3_" + joined,
          "lora_te3." + module,  // OneTrainer
          cat("lora_te", index + 1, "_", joined),
          cat("lora_te", index + 1, ".", module),
          cat(part, ".", module),
          kPeft + module,
          cat(kPeft, part, ".", module),
          "t5xxl.transformer." + module,  // ComfyUI
          "text_encoders.t5xxl.transformer." + module};
}

// The same for a CLIP, the `index`-th text encoder.
std::vector<std::string> clip_spellings(const std::string& part, size_t index,
                                        const std::string& module) {
  constexpr std::string_view kModel = "text_model.";
  const std::string plain = module.starts_with(kModel) ? module.substr(kModel.size()) : module;
  const std::string joined = underscored(cat(kModel, plain));
  const std::string own = cat("lora_te", index + 1);
  std::vector<std::string> out = {own + "_" + joined};
  if (index == 0) out.push_back("lora_te_" + joined);
  // OneTrainer writes dots in the same names.
  for (const std::string& front : {cat(part, "."), kPeft, cat(kPeft, part, "."), own + "."}) {
    out.insert(out.end(), {front + plain, cat(front, kModel, plain)});
  }
  if (index == 0) out.insert(out.end(), {"lora_te." + plain, cat("lora_te.", kModel, plain)});
  // ComfyUI's own, which calls the encoders by their kinds.
  for (const char* kind : {"clip_l", "clip_h", "clip_g"}) {
    if ((index > 0) != (kind == std::string_view("clip_g"))) continue;
    const std::string name = cat(kind, ".transformer.", kModel, plain);
    out.insert(out.end(), {name, "text_encoders." + name});
  }
  return out;
}

std::vector<std::string> text_spellings(const ModelPart& part, size_t index,
                                        const std::string& module) {
  const bool t5 = part.class_name == "T5EncoderModel";
  if (!t5 && !part.class_name.starts_with("CLIP")) return {};  // a language model
  return t5 ? t5_spellings(part.name, index, module) : clip_spellings(part.name, index, module);
}

// Of a UNet's first level.
int64_t resnets_of(const io::JsonConfig& unet) {
  const size_t levels = std::max<size_t>(1, unet.integers("block_out_channels").size());
  return unet.integer_each("layers_per_block", levels, {1, 64}, 2).front();
}

// The names of a layer of a transformer in files, in diffusers' words.
std::vector<std::string> transformer_spellings(const std::string& module) {
  return {"transformer." + module,
          module,
          kPeft + module,
          kPeft + "transformer." + module,
          "lora_transformer." + module,  // OneTrainer
          "lora_transformer_" + underscored(module),
          "lora_unet_" + underscored(module),
          "lycoris_" + underscored(module)};
}

// The same in its authors' words; one adapter may be for several layers.
struct OriginalLayer {
  std::string name;
  std::vector<LayerPart> parts;
};

std::vector<OriginalLayer> original_layers(const ModelPart& part) {
  if (part.class_name == "ZImageTransformer2DModel") {
    std::vector<OriginalLayer> out;
    const int64_t layers = part.config.integer_or("n_layers", 30, {0, 1024});
    const int64_t refiners = part.config.integer_or("n_refiner_layers", 2, {0, 1024});
    for (const std::string& name : z_image_layers(layers, refiners)) {
      out.push_back({name, z_image_layer(name)});
    }
    return out;
  }
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

// Whether it is a LoRA, LoHa or LoKr, whose products have a factor.
bool has_factor(const AdapterLayer& layer) {
  return std::ranges::any_of(layer.tensors, [](const auto& tensor) {
    return tensor.first == "down" || tensor.first.starts_with("hada_") ||
           tensor.first.starts_with("lokr_");
  });
}

// The inner size of a layer's products; nothing if it has whole matrices only.
std::optional<int64_t> rank_of(const AdapterLayer& layer) {
  for (const char* role : {"down", "hada_w1_b", "lokr_w2_b", "lokr_w1_b"}) {
    const TensorEntry* factor = layer.find(role);
    if (factor != nullptr && factor->shape.rank() >= 2) return factor->shape[0];
  }
  return std::nullopt;
}

// Applies PEFT's configuration to the layers that begin with `prefix`; a layer's own
// alpha overrides it.
void take_factors(const PeftConfig& config, std::string_view prefix, LayerKeys& keys) {
  for (auto& [name, layer] : keys.layers) {
    if (layer.alpha || layer.factor || !has_factor(layer) || !name.starts_with(prefix)) continue;
    layer.factor = config.factor(name.substr(prefix.size()), rank_of(layer));
  }
}

// diffusers' configurations in a file's header: one for each part, with its name
// before the fields, as in "unet.lora_alpha"; a single part may have no name.
void take_header_factors(const LoraSource& source, LayerKeys& keys) {
  constexpr const char* kKey = "lora_adapter_metadata";
  if (source.path.extension() != ".safetensors") return;
  const auto text = io::read_safetensors_metadata(*io::MappedFile::open(source.path), kKey);
  if (!text) return;
  const std::string where = cat(source.path.string(), ": ", kKey);
  const nlohmann::json said = io::parse_json(*text, where);
  check(said.is_object(), where, "it is no JSON object");
  std::map<std::string, nlohmann::json> parts;
  for (const auto& [key, value] : said.items()) {
    const size_t dot = key.rfind('.');
    const size_t field = dot == std::string::npos ? 0 : dot + 1;
    parts[key.substr(0, field)][key.substr(field)] = value;
  }
  // Names first: these are for fewer layers.
  for (const auto& [prefix, config] : std::views::reverse(parts)) {
    take_factors(PeftConfig(config.dump(), where, PeftOf::pictures), prefix, keys);
  }
}

// The layers' settings in adapter_config.json beside a file of PEFT's.
void take_peft_factors(const io::Checkpoint& file, const LoraSource& source, LayerKeys& keys) {
  if (source.path.filename() != PeftConfig::kWeightsName) return;
  const std::optional<std::string> text = file.text_file(PeftConfig::kName);
  if (!text) return;
  const PeftConfig config(*text, cat(source.path.string(), ": ", PeftConfig::kName),
                          PeftOf::pictures);
  take_factors(config, kPeft, keys);
  take_factors(config, "", keys);
}

// PEFT itself does not load such a file. Others take the factor 1, as for LyCORIS's own files.
void report_missing_factors(const LoraSource& source, const LayerKeys& keys) {
  const auto lacks = [](const auto& named) {
    const AdapterLayer& layer = named.second;
    return named.first.starts_with(kPeft) && has_factor(layer) && !layer.alpha && !layer.factor;
  };
  if (std::ranges::none_of(keys.layers, lacks)) return;
  log(LogLevel::warn,
      "an adapter of PEFT has no adapter_config.json beside it; its layers get the factor 1",
      {{"file", source.path.string()}});
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

void LoraPatch::apply(std::string_view name, const Shape& shape, std::span<float> values) const {
  const std::vector<float> before(values.begin(), values.end());
  for (const Update& update : updates_.at(std::string(name))) {
    const auto change = update.change->values(before, shape, update.rows, *device_);
    for (size_t i = 0; i < values.size(); ++i) values[i] += update.factor * change[i];
  }
}

LoraSet::LoraSet(const ModelFiles& files, std::span<const LoraSource> sources, Device& device) {
  if (sources.empty()) return;
  const Targets targets = find_targets(files);
  for (const LoraSource& source : sources) read(source, targets, device);
}

LoraSet::Target LoraSet::target(const ModelPart& part, const TensorEntry& weight,
                                const RowShare& rows) {
  Target out{part.name, weight.name, weight.shape, rows, {}};
  const std::string module = weight.name.substr(0, weight.name.size() - kWeight.size());
  if (const TensorEntry* bias = part.weights.find(cat(module, kBias))) out.bias = bias->shape;
  return out;
}

LoraSet::Targets LoraSet::find_targets(const ModelFiles& files) {
  Targets targets;
  size_t text_encoders = 0;
  for (const ModelPart& part : files.parts) {
    if (part.name == "transformer") add_transformer(part, targets);
    const bool unet = part.name == "unet", text = part.name.starts_with(kTextEncoder);
    if (!unet && !text) continue;
    const int64_t resnets = unet ? resnets_of(part.config) : 0;
    for (const TensorEntry& entry : part.weights.tensors()) {
      if (!entry.name.ends_with(kWeight) || entry.shape.rank() < 1) continue;
      const std::string module = entry.name.substr(0, entry.name.size() - kWeight.size());
      const auto spellings = unet ? unet_spellings(module, {.resnets = resnets})
                                  : text_spellings(part, text_encoders, module);
      for (const std::string& spelling : spellings) {
        targets.try_emplace(spelling, 1, target(part, entry, {}));
      }
    }
    if (text) ++text_encoders;
  }
  return targets;
}

void LoraSet::add_transformer(const ModelPart& part, Targets& targets) {
  for (const TensorEntry& entry : part.weights.tensors()) {
    if (!entry.name.ends_with(kWeight) || entry.shape.rank() < 1) continue;
    const std::string module = entry.name.substr(0, entry.name.size() - kWeight.size());
    for (const std::string& spelling : transformer_spellings(module)) {
      targets.try_emplace(spelling, 1, target(part, entry, {}));
    }
  }
  for (const OriginalLayer& layer : original_layers(part)) {
    std::vector<Target> found;
    for (const LayerPart& piece : layer.parts) {
      const TensorEntry* entry = part.weights.find(cat(piece.module, kWeight));
      if (entry == nullptr || entry->shape.rank() < 2 || piece.halves_swapped) continue;
      found.push_back(target(part, *entry, piece.rows));
    }
    if (found.size() != layer.parts.size() || found.empty()) continue;
    for (const std::string& spelling :
         {"lora_unet_" + underscored(layer.name), "diffusion_model." + layer.name, layer.name}) {
      targets.try_emplace(spelling, found);
    }
  }
}

// The changed weights and bias of a layer.
struct LoraSet::Changes {
  std::shared_ptr<const WeightChange> weight, bias;

  // Before any change, so that a failure does not leave the model between two sets of adapters.
  void check_fit(const std::string& path, const std::vector<Target>& targets) const {
    for (const Target& each : targets) {
      if (weight != nullptr) weight->check_fit(each.tensor, each.shape, each.rows);
      if (bias == nullptr) continue;
      if (!each.bias) {
        fail(Code::unsupported, path, "it changes the bias of ", each.tensor, ", which has none");
      }
      bias->check_fit(each.bias_name(), *each.bias, each.rows);
    }
  }
};

std::string LoraSet::Target::bias_name() const {
  return cat(tensor.substr(0, tensor.size() - kWeight.size()), kBias);
}

// A layer without a part of its change would be a different model.
void LoraSet::refuse_kinds(const std::string& path, const std::vector<std::string>& unknown,
                           const Targets& targets) {
  size_t longest = 0;  // a file's names may be far longer
  for (const auto& [name, each] : targets) longest = std::max(longest, name.size());
  for (const std::string& key : unknown) {
    for (size_t dot = key.rfind('.', longest); dot != std::string::npos && dot > 0;
         dot = key.rfind('.', dot - 1)) {
      if (!targets.contains(key.substr(0, dot))) continue;
      fail(Code::unsupported, path, "it has ", key,
           "; such changes of a layer are not implemented");
    }
  }
}

void LoraSet::read(const LoraSource& source, const Targets& targets, Device& device) {
  const std::string path = source.path.string();
  for (const float strength : {source.weight, source.text_weight.value_or(source.weight)}) {
    check(std::isfinite(strength), path, "its strength is ", strength);
  }
  io::refuse_pickle(source.path);
  const io::Checkpoint file = io::Checkpoint::open(source.path);
  LayerKeys keys = sort_keys(file, path);
  refuse_kinds(path, keys.unknown, targets);
  take_header_factors(source, keys);
  take_peft_factors(file, source, keys);
  report_missing_factors(source, keys);
  size_t used = 0;
  for (const auto& [name, layer] : keys.layers) {
    const auto target = targets.find(name);
    if (target == targets.end() || layer.tensors.empty()) {
      keys.unknown.push_back(name);
      continue;
    }
    const Changes changes{read_change(path, layer), read_bias_change(path, layer)};
    if (changes.weight == nullptr && changes.bias == nullptr) {
      fail(Code::unsupported, path, "of ", name, " it has only ",
           layer.tensors.begin()->second->name, ", which is no whole change of a layer");
    }
    changes.check_fit(path, target->second);
    const std::string& part = target->second.front().part;
    const bool text = part.starts_with(kTextEncoder);
    add(changes, target->second, text ? source.text_weight.value_or(source.weight) : source.weight,
        patches_.try_emplace(part, device).first->second);
    ++used;
  }
  check(used > 0, path, "none of its ", keys.unknown.size(), " layers is one of this ",
        "model's: it is for another family, or no adapter");
  report_unknown(source, keys.unknown, used);
}

void LoraSet::add(const Changes& changes, const std::vector<Target>& targets, float strength,
                  LoraPatch& patch) {
  for (const Target& each : targets) {
    for (const auto& [name, change] :
         {std::pair{each.tensor, changes.weight}, {each.bias_name(), changes.bias}}) {
      if (change != nullptr) patch.add(name, {change, each.rows, strength * change->scale()});
    }
  }
}

std::vector<std::string> LoraSet::parts() const {
  std::vector<std::string> out;
  out.reserve(patches_.size());
  for (const auto& [part, patch] : patches_) out.push_back(part);
  return out;
}

const nn::WeightPatch* LoraSet::patch(const std::string& part) const {
  const auto found = patches_.find(part);
  return found == patches_.end() ? nullptr : &found->second;
}

}  // namespace rbee::models
