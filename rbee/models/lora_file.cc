#include "rbee/models/lora_file.h"

#include <algorithm>
#include <map>
#include <optional>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/models/peft_config.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::TensorEntry;

fs::path weights_path(const fs::path& path) {
  if (!fs::is_directory(path)) {
    io::refuse_pickle(path);
    return path;
  }
  fs::path weights = path / PeftConfig::kWeightsName;
  const fs::path pickled = path / "adapter_model.bin";
  if (!fs::exists(weights) && fs::exists(pickled)) io::refuse_pickle(pickled);
  return weights;
}

std::string without(std::string text, std::string_view part) {
  const size_t at = text.find(part);
  if (at != std::string::npos) text.erase(at, part.size());
  return text;
}

// A module's name as a language model alone has it.
std::string peft_module(std::string_view name) {
  constexpr std::string_view kWrapper = "base_model.model.";
  if (name.starts_with(kWrapper)) name.remove_prefix(kWrapper.size());
  return without(std::string(name), "language_model.");
}

void refuse_tensor(const std::string& source, const std::string& name) {
  for (const auto& [part, what] : {std::pair{"lora_magnitude_vector", "DoRA"},
                                   {"lora_embedding_", "adapters of the token table"},
                                   {"token_embd.", "adapters of the token table"},
                                   {".lora_B.bias", "biases of adapters"}}) {
    if (name.find(part) == std::string::npos) continue;
    fail(Code::unsupported, source, "it has ", name, "; ", what, " are not implemented");
  }
}

}  // namespace

LoraFile::LoraFile(const fs::path& path)
    : source_(path.string()), file_(io::Checkpoint::open(weights_path(path))) {
  if (is_gguf()) {
    read_gguf();
  } else {
    read_peft();
  }
}

void LoraFile::pair_tensors(const Endings& endings) {
  std::map<std::string, LoraFileLayer> pairs;
  std::string unknown;
  for (const TensorEntry& entry : file_.tensors()) {
    refuse_tensor(source_, entry.name);
    const std::string name = without(entry.name, ".default");
    if (is_copy(entry)) continue;
    const bool down = name.ends_with(endings.down);
    if (!down && !name.ends_with(endings.up)) {
      if (unknown.empty()) unknown = entry.name;
      continue;
    }
    const size_t rest = (down ? endings.down : endings.up).size();
    const std::string front = name.substr(0, name.size() - rest);
    LoraFileLayer& pair = pairs[is_gguf() ? front : peft_module(front)];
    const TensorEntry*& place = down ? pair.down : pair.up;
    check(place == nullptr, source_, "two tensors are ", front, down ? endings.down : endings.up);
    place = &entry;
  }
  check(unknown.empty(), source_, "it has ", unknown, ", which is no part of a LoRA adapter");
  check(!pairs.empty(), source_, "it holds no tensors");
  for (auto& [module, pair] : pairs) {
    pair.module = module;
    check_layer(pair);
    layers_.push_back(std::move(pair));
  }
}

// PEFT writes the model's own output matrix beside an adapter of it.
bool LoraFile::is_copy(const TensorEntry& entry) const {
  if (is_gguf() || !entry.name.ends_with(".base_layer.weight")) return false;
  log(LogLevel::warn, "an adapter has a copy of a matrix; the model's own is used",
      {{"file", source_}, {"tensor", entry.name}});
  return true;
}

void LoraFile::check_layer(const LoraFileLayer& layer) const {
  check(layer.down != nullptr && layer.up != nullptr, source_, "of ", layer.module, " it has only ",
        layer.down != nullptr ? layer.down->name : layer.up->name);
  const Shape &down = layer.down->shape, &up = layer.up->shape;
  check(down.rank() == 2 && up.rank() == 2 && down[0] >= 1 && up[1] == down[0], source_,
        layer.down->name, " is (", down, ") and ", layer.up->name, " (", up,
        "), wanted (rank, in) and (out, rank)");
}

void LoraFile::read_peft() {
  const std::optional<std::string> text = file_.text_file(PeftConfig::kName);
  if (!text) {
    fail(Code::not_found, source_, PeftConfig::kName, " is not beside ", PeftConfig::kWeightsName,
         "; save the adapter with PEFT's save_pretrained");
  }
  const PeftConfig config(*text, cat(source_, ": ", PeftConfig::kName));
  pair_tensors({.down = ".lora_A.weight", .up = ".lora_B.weight"});
  for (LoraFileLayer& layer : layers_) {
    layer.factor = config.factor(layer.module, layer.down->shape[0]);
  }
}

void LoraFile::read_gguf() {
  const io::Metadata& metadata = file_.metadata();
  const std::string type(metadata.get_string("general.type").value_or("model"));
  check(type == "adapter", source_, "general.type is \"", type, "\", wanted \"adapter\"");
  const std::string kind(metadata.require_string("adapter.type"));
  if (kind != "lora") {
    fail(Code::unsupported, source_, "adapter.type is \"", kind, "\", wanted \"lora\"");
  }
  if (metadata.contains("adapter.alora.invocation_tokens")) {
    fail(Code::unsupported, source_, "adapters that tokens switch on are not implemented");
  }
  architecture_ = metadata.require_string("general.architecture");
  pair_tensors({.down = ".weight.lora_a", .up = ".weight.lora_b"});
  const double alpha = metadata.require_f64("adapter.lora.alpha");
  for (LoraFileLayer& layer : layers_) {
    // llama.cpp reads 0 as the rank.
    const auto rank = static_cast<double>(layer.down->shape[0]);
    layer.factor = alpha == 0 ? 1.0f : lora_factor(source_, alpha, rank);
  }
}

}  // namespace rbee::models
