#include "server/llm/sampling.h"

#include <algorithm>
#include <string_view>

namespace rbee::server {

engine::SamplingParams to_engine(const SamplingFields& fields) {
  engine::SamplingParams out;
  const auto set = [](auto& value, const auto& field) {
    if (field) value = *field;
  };
  set(out.temperature, fields.temperature);
  set(out.top_k, fields.top_k);
  set(out.top_p, fields.top_p);
  set(out.min_p, fields.min_p);
  set(out.repetition_penalty, fields.repetition_penalty);
  set(out.frequency_penalty, fields.frequency_penalty);
  set(out.presence_penalty, fields.presence_penalty);
  set(out.repeat_last_n, fields.repeat_last_n);
  out.penalise_prompt = fields.penalise_prompt;
  out.seed = fields.seed;
  set(out.typical_p, fields.typical_p);
  set(out.top_n_sigma, fields.top_n_sigma);
  set(out.xtc_probability, fields.xtc_probability);
  set(out.xtc_threshold, fields.xtc_threshold);
  set(out.dry_multiplier, fields.dry_multiplier);
  set(out.dry_base, fields.dry_base);
  set(out.dry_allowed_length, fields.dry_allowed_length);
  set(out.dry_penalty_last_n, fields.dry_penalty_last_n);
  set(out.dry_sequence_breakers, fields.dry_sequence_breakers);
  set(out.dynatemp_range, fields.dynatemp_range);
  set(out.dynatemp_exponent, fields.dynatemp_exponent);
  set(out.mirostat, fields.mirostat);
  set(out.mirostat_tau, fields.mirostat_tau);
  set(out.mirostat_eta, fields.mirostat_eta);
  for (const SamplingFields::Bias& bias : fields.logit_bias) {
    out.logit_bias.push_back({bias.id, bias.text, bias.bias});
  }
  set(out.min_tokens, fields.min_tokens);
  set(out.ignore_eos, fields.ignore_eos);
  out.bad_words = fields.bad_words;
  if (fields.samplers) {
    out.samplers.clear();
    for (const std::string& name : *fields.samplers) {
      if (const auto kind = engine::parse_sampler(name)) out.samplers.push_back(*kind);
    }
  }
  return out;
}

SamplingFields with_defaults(SamplingFields fields) {
  const engine::SamplingParams params = to_engine(fields);
  fields.temperature = params.temperature;
  fields.top_k = params.top_k;
  fields.top_p = params.top_p;
  fields.min_p = params.min_p;
  fields.repetition_penalty = params.repetition_penalty;
  fields.frequency_penalty = params.frequency_penalty;
  fields.presence_penalty = params.presence_penalty;
  fields.repeat_last_n = params.repeat_last_n;
  fields.typical_p = params.typical_p;
  fields.top_n_sigma = params.top_n_sigma;
  fields.xtc_probability = params.xtc_probability;
  fields.xtc_threshold = params.xtc_threshold;
  fields.dry_multiplier = params.dry_multiplier;
  fields.dry_base = params.dry_base;
  fields.dry_allowed_length = params.dry_allowed_length;
  fields.dry_penalty_last_n = params.dry_penalty_last_n;
  fields.dry_sequence_breakers = params.dry_sequence_breakers;
  fields.dynatemp_range = params.dynatemp_range;
  fields.dynatemp_exponent = params.dynatemp_exponent;
  fields.mirostat = params.mirostat;
  fields.mirostat_tau = params.mirostat_tau;
  fields.mirostat_eta = params.mirostat_eta;
  fields.min_tokens = params.min_tokens;
  fields.ignore_eos = params.ignore_eos;
  if (fields.samplers) return fields;
  fields.samplers.emplace();
  for (std::string_view names = engine::kSamplerNames; !names.empty();) {
    const size_t end = std::min(names.find(", "), names.size());
    fields.samplers->emplace_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 2, names.size()));
  }
  return fields;
}

void set_open_defaults(SamplingFields& fields, const engine::SamplingDefaults& model) {
  if (!fields.temperature) fields.temperature = model.temperature.value_or(1.0f);
  if (!fields.top_p) fields.top_p = model.top_p.value_or(1.0f);
  if (!fields.top_k) fields.top_k = model.top_k.value_or(0);
  if (!fields.min_p) fields.min_p = model.min_p;
  if (!fields.repetition_penalty) fields.repetition_penalty = model.repetition_penalty;
  // A request that names a window wants llama-server's way of counting.
  if (fields.repeat_last_n) return;
  fields.repeat_last_n = 0;
  fields.penalise_prompt = false;
}

}  // namespace rbee::server
