#include "rbee/models/peft_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rbee/core/error.h"

namespace rbee::models {
namespace {

using io::JsonConfig;

constexpr double kDefaultAlpha = 8;  // PEFT's

// Fields that change an adapter's effect and are not supported here.
struct Refused {
  const char* field;
  const char* what;
};
constexpr Refused kRefused[] = {
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

void refuse_what_is_not_done(const JsonConfig& config, PeftOf of) {
  const std::string type = config.text_or("peft_type", "LORA");
  const bool lycoris = type == "LOHA" || type == "LOKR";
  if (type != "LORA" && !(lycoris && of == PeftOf::pictures)) {
    fail(Code::unsupported, config.describe("peft_type"), "is \"", type, "\", wanted \"LORA\"",
         of == PeftOf::pictures ? ", \"LOHA\" or \"LOKR\"" : "");
  }
  if (of == PeftOf::texts && !config.is_off("use_dora")) {
    fail(Code::unsupported, config.describe("use_dora"), "DoRA is not implemented");
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

// Keys are regular expressions for the end of a name; in use are names.
void check_patterns(const JsonConfig& patterns) {
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

}  // namespace

float lora_factor(const std::string& source, double alpha, double divisor) {
  const double factor = alpha / divisor;
  check(std::fabs(factor) <= std::numeric_limits<float>::max(), source, "alpha is ", alpha,
        ", which is no number that layers can take");
  return static_cast<float>(factor);
}

PeftConfig::PeftConfig(std::string_view text, const std::string& source, PeftOf of)
    : config_(text, source),
      ranks_(config_.section("rank_pattern")),
      alphas_(config_.section("alpha_pattern")) {
  refuse_what_is_not_done(config_, of);
  rank_ = config_.integer_or("r", 8);
  const bool lora = config_.text_or("peft_type", "LORA") == "LORA";
  alpha_ = config_.number_or(lora ? "lora_alpha" : "alpha", kDefaultAlpha);
  root_ = config_.flag_or("use_rslora", false);
  for (const JsonConfig* pattern : {&ranks_, &alphas_}) check_patterns(*pattern);
}

float PeftConfig::factor(const std::string& module, std::optional<int64_t> rank) const {
  const std::optional<std::string> own_rank = match(ranks_, module);
  const int64_t wanted = own_rank ? ranks_.integer(*own_rank) : rank_;
  check(!rank || rank == wanted, config_.source(), "the rank of ", module, " is ", wanted,
        ", its tensors have ", rank.value_or(0));
  check(wanted > 0, config_.source(), "the rank of ", module, " is ", wanted);
  const std::optional<std::string> own_alpha = match(alphas_, module);
  const double alpha = own_alpha ? alphas_.number_or(*own_alpha, alpha_) : alpha_;
  const auto divisor = static_cast<double>(wanted);
  return lora_factor(config_.source(), alpha, root_ ? std::sqrt(divisor) : divisor);
}

std::optional<std::string> PeftConfig::match(const JsonConfig& patterns,
                                             const std::string& module) const {
  std::optional<std::string> found;
  // Its ends rather than all patterns, of which there may be one for each module.
  for (std::string_view end = module;; end.remove_prefix(end.find('.') + 1)) {
    if (patterns.has(end)) {
      check(!found, config_.source(), "both \"", *found, "\" and \"", end, "\" are ", module);
      found = end;
    }
    if (end.find('.') == std::string_view::npos) return found;
  }
}

}  // namespace rbee::models
