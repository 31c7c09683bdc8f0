#include "rbee/models/lora_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/io/json_config.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::JsonConfig;
using io::TensorEntry;

constexpr const char* kConfigName = "adapter_config.json";
constexpr const char* kWeightsName = "adapter_model.safetensors";
constexpr double kDefaultAlpha = 8;  // PEFT's

fs::path weights_path(const fs::path& path) {
  if (!fs::is_directory(path)) {
    io::refuse_pickle(path);
    return path;
  }
  fs::path weights = path / kWeightsName;
  const fs::path pickled = path / "adapter_model.bin";
  if (!fs::exists(weights) && fs::exists(pickled)) io::refuse_pickle(pickled);
  return weights;
}

// Fields that change what an adapter does, and that this code does not do.
struct Refused {
  const char* field;
  const char* what;
};
constexpr Refused kRefused[] = {
    {"use_dora", "DoRA"},
    {"use_qalora", "QALoRA"},
    {"lora_bias", "biases of adapters"},
    {"modules_to_save", "modules that are saved whole"},
    {"layer_replication", "layers that come twice"},
    {"target_parameters", "adapters of stacked parameters, as experts have"},
    {"trainable_token_indices", "tokens that were trained"},
    {"alora_invocation_tokens", "adapters that tokens switch on"},
    {"fan_in_fan_out", "matrices that are stored transposed"},
};
// Others change the model's own weights.
constexpr std::string_view kPlainBeginnings[] = {"gaussian", "eva", "orthogonal", "true", "false"};

void refuse_what_is_not_done(const JsonConfig& config) {
  const std::string type = config.text_or("peft_type", "LORA");
  if (type != "LORA") {
    fail(Code::unsupported, config.describe("peft_type"), "is \"", type, "\", wanted \"LORA\"");
  }
  for (const Refused& each : kRefused) {
    if (config.is_off(each.field)) continue;
    fail(Code::unsupported, config.describe(each.field), each.what, " are not implemented");
  }
  const std::string bias = config.text_or("bias", "none");
  if (bias != "none") {
    fail(Code::unsupported, config.describe("bias"), "is \"", bias, "\", wanted \"none\"");
  }
  if (!config.is_text("init_lora_weights")) return;
  const std::string begin = config.text("init_lora_weights");
  if (std::ranges::find(kPlainBeginnings, begin) != std::end(kPlainBeginnings)) return;
  fail(Code::unsupported, config.describe("init_lora_weights"), "is \"", begin,
       "\", which changes the model's own weights; convert the adapter with save_pretrained's "
       "path_initial_model_for_weight_conversion");
}

float factor_of(const std::string& source, double alpha, double divisor) {
  const double factor = alpha / divisor;
  check(std::fabs(factor) <= std::numeric_limits<float>::max(), source, "alpha is ", alpha,
        ", which is no number that layers can take");
  return static_cast<float>(factor);
}

// The settings of PEFT's adapter_config.json.
class PeftConfig {
 public:
  PeftConfig(std::string_view text, const std::string& source)
      : config_(text, source),
        ranks_(config_.section("rank_pattern")),
        alphas_(config_.section("alpha_pattern")) {
    refuse_what_is_not_done(config_);
    rank_ = config_.integer_or("r", 8);
    alpha_ = config_.number_or("lora_alpha", kDefaultAlpha);
    root_ = config_.flag_or("use_rslora", false);
    for (const JsonConfig* pattern : {&ranks_, &alphas_}) check_patterns(*pattern);
  }

  // The factor of a module whose tensors have this rank.
  float factor(const std::string& module, int64_t rank) const {
    const std::optional<std::string> own_rank = match(ranks_, module);
    const int64_t wanted = own_rank ? ranks_.integer(*own_rank) : rank_;
    check(rank == wanted, config_.source(), "the rank of ", module, " is ", wanted,
          ", its tensors have ", rank);
    const std::optional<std::string> own_alpha = match(alphas_, module);
    const double alpha = own_alpha ? alphas_.number_or(*own_alpha, alpha_) : alpha_;
    const auto divisor = static_cast<double>(rank);
    return factor_of(config_.source(), alpha, root_ ? std::sqrt(divisor) : divisor);
  }

 private:
  // Keys are regular expressions for the end of a name; in use are names.
  static void check_patterns(const JsonConfig& patterns) {
    for (const std::string& key : patterns.fields()) {
      const bool plain = std::ranges::all_of(key, [](char c) {
        return c == '_' || c == '.' || c == '-' || (c >= '0' && c <= '9') ||
               ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
      });
      if (plain) continue;
      fail(Code::unsupported, patterns.describe(key), "is a pattern; names of modules and their ",
           "ends are implemented");
    }
  }

  std::optional<std::string> match(const JsonConfig& patterns, const std::string& module) const {
    std::optional<std::string> found;
    for (const std::string& key : patterns.fields()) {
      if (module != key && !module.ends_with("." + key)) continue;
      check(!found, config_.source(), "both \"", *found, "\" and \"", key, "\" are ", module);
      found = key;
    }
    return found;
  }

  JsonConfig config_, ranks_, alphas_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool root_ = false;  // rank-stabilised (Kalajdzievski 2023)
};

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
  const std::optional<std::string> text = file_.text_file(kConfigName);
  if (!text) {
    fail(Code::not_found, source_, kConfigName, " is not beside ", kWeightsName,
         "; save the adapter with PEFT's save_pretrained");
  }
  const PeftConfig config(*text, cat(source_, ": ", kConfigName));
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
    layer.factor = alpha == 0 ? 1.0f : factor_of(source_, alpha, rank);
  }
}

}  // namespace rbee::models
