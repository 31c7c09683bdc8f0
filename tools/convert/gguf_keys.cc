// set_model_keys(), set_rope_keys(): the keys of an architecture.

#include <cmath>

#include "rbee/core/error.h"
#include "tools/convert/gguf_form.h"
#include "tools/convert/keys.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "convert";

// The n of "every n-th layer sees all"; 0 when there is none.
int64_t period_of(const std::vector<int64_t>& windows) {
  for (size_t period = 1; period <= windows.size() + 1; ++period) {
    bool holds = true;
    for (size_t layer = 0; layer < windows.size() && holds; ++layer) {
      holds = (windows[layer] != 0) == ((layer + 1) % period != 0);
    }
    if (holds) return static_cast<int64_t>(period);
  }
  return 0;
}

void set_windows(const GgufForm& form, Keys& keys) {
  int64_t size = 0;
  for (const int64_t window : form.windows) size = std::max(size, window);
  if (size == 0) return;
  keys.integer("attention.sliding_window", size);
  if (form.windows == form.usual_windows) return;
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const int64_t period = period_of(form.windows);
  if (form.architecture == "gemma3" && period > 0) return keys.integer(kPattern, period);
  std::vector<bool> slides;
  for (const int64_t window : form.windows) slides.push_back(window != 0);
  keys.flags(kPattern, slides);
}

SourceTensor made_tensor(std::string name, const std::vector<double>& values) {
  SourceTensor tensor;
  tensor.made = std::make_shared<const std::vector<float>>(values.begin(), values.end());
  tensor.stored.name = std::move(name);
  tensor.stored.shape = Shape{static_cast<int64_t>(values.size())};
  tensor.stored.data = std::as_bytes(std::span(*tensor.made));
  return tensor;
}

// GGUF files store Llama 3's scaling as the divisor of each frequency.
SourceTensor llama3_divisors(const nn::RopeOptions& rope) {
  nn::RopeOptions plain = rope;
  plain.scaling = nn::RopeScaling::none;
  std::vector<double> divisors = nn::rope_frequencies(plain, 1).radians;
  const std::vector<double> scaled = nn::rope_frequencies(rope, 1).radians;
  for (size_t i = 0; i < divisors.size(); ++i) divisors[i] /= scaled[i];
  return made_tensor("rope_freqs.weight", divisors);
}

void set_yarn(const nn::RopeOptions& rope, Keys& keys) {
  if (!rope.truncate) {
    fail(Code::unsupported, kOp, "config.json's rope scaling has truncate false, which GGUF files ",
         "cannot hold");
  }
  const nn::RopeOptions usual;
  keys.text("rope.scaling.type", "yarn");
  keys.number("rope.scaling.factor", rope.factor);
  keys.integer("rope.scaling.original_context_length", rope.original_positions);
  if (rope.beta_fast != usual.beta_fast) {
    keys.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  }
  if (rope.beta_slow != usual.beta_slow) {
    keys.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  }
  // Readers multiply it with the formula of the paper.
  const double formula = rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1;
  const double magnitude = nn::rope_frequencies(rope, 1).magnitude;
  if (magnitude != formula) keys.number("rope.scaling.attn_factor", magnitude / formula);
}

std::vector<SourceTensor> set_longrope(const nn::RopeOptions& rope, Keys& keys) {
  keys.text("rope.scaling.type", "longrope");
  keys.integer("rope.scaling.original_context_length", rope.original_positions);
  keys.number("rope.scaling.attn_factor", nn::rope_frequencies(rope, 1).magnitude);
  return {made_tensor("rope_factors_long.weight", rope.long_factors),
          made_tensor("rope_factors_short.weight", rope.short_factors)};
}

}  // namespace

void set_model_keys(const GgufForm& form, io::GgufWriter& writer) {
  const models::ModelConfig& config = form.config;
  writer.set_string("general.architecture", form.architecture);
  Keys keys(form.architecture, writer);
  set_size_keys(config, keys);
  keys.integer("attention.head_count_kv", config.kv_heads);
  keys.integer("attention.key_length", config.head_dim);
  keys.integer("attention.value_length", config.head_dim);
  keys.number(form.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
              config.norm_eps);
  keys.integer("vocab_size", config.vocab_size);
  set_windows(form, keys);
  if (form.experts) {
    keys.integer("expert_count", form.experts->all);
    keys.integer("expert_used_count", form.experts->chosen);
  }
  for (const auto& [name, value] : form.sizes) keys.integer(name, value);
  if (form.normalises) keys.flag("expert_weights_norm", *form.normalises);
  for (const auto& [name, value] : form.scales) keys.number(name, value);
  if (form.attention_softcap) keys.number("attn_logit_softcapping", *form.attention_softcap);
  if (form.logit_softcap) keys.number("final_logit_softcapping", *form.logit_softcap);
}

std::vector<SourceTensor> set_rope_keys(const GgufForm& form, io::GgufWriter& writer) {
  const nn::RopeOptions& rope = form.rope;
  Keys keys(form.architecture, writer);
  keys.number("rope.freq_base", rope.base);
  keys.integer("rope.dimension_count", rope.rotary_dim);
  if (form.local_rope_base) keys.number("rope.freq_base_swa", *form.local_rope_base);
  switch (rope.scaling) {
    case nn::RopeScaling::none:
      break;
    case nn::RopeScaling::linear:
      keys.text("rope.scaling.type", "linear");
      keys.number("rope.scaling.factor", rope.factor);
      break;
    case nn::RopeScaling::dynamic:
      fail(Code::unsupported, kOp,
           "config.json's rope scaling is dynamic, which GGUF files cannot ",
           "hold; without it the model is good for its trained ", form.config.context_length,
           " positions");
    case nn::RopeScaling::yarn:
      set_yarn(rope, keys);
      break;
    case nn::RopeScaling::llama3:
      return {llama3_divisors(rope)};
    case nn::RopeScaling::longrope:
      return set_longrope(rope, keys);
  }
  return {};
}

}  // namespace rbee::tools
