#include "rbee/engine/api/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

constexpr std::array<std::pair<std::string_view, SamplerKind>, 10> kNames = {{
    {"penalties", SamplerKind::penalties},
    {"dry", SamplerKind::dry},
    {"top_n_sigma", SamplerKind::top_n_sigma},
    {"top_k", SamplerKind::top_k},
    {"typ_p", SamplerKind::typical_p},
    {"typical_p", SamplerKind::typical_p},
    {"top_p", SamplerKind::top_p},
    {"min_p", SamplerKind::min_p},
    {"xtc", SamplerKind::xtc},
    {"temperature", SamplerKind::temperature},
}};

// NaN is in no range.
void check_range(const char* field, double value, double low, double high) {
  check(value >= low && value <= high, field, value, " is outside of ", low, " to ", high);
}

void check_texts(const char* field, const std::vector<std::string>& texts, size_t most) {
  check(texts.size() <= most, field, texts.size(), " texts are more than ", most);
  for (const std::string& text : texts) {
    check(!text.empty() && text.size() <= kMaxWordBytes, field, "a text of ", text.size(),
          " bytes is outside of 1 to ", kMaxWordBytes);
  }
}

void check_biases(const std::vector<LogitBias>& list) {
  check(list.size() <= kMaxBiases, "logit_bias", list.size(), " tokens are more than ", kMaxBiases);
  for (const LogitBias& entry : list) {
    check(entry.id >= 0 || !entry.text.empty(), "logit_bias", "a token is missing");
    if (entry.bias != -INFINITY) check_range("logit_bias", entry.bias, -kMaxBias, kMaxBias);
  }
}

void check_samplers(const std::vector<SamplerKind>& list) {
  check(list.size() <= kMaxSamplers, "samplers", list.size(), " are more than ", kMaxSamplers);
  bool cut = false;
  for (const SamplerKind kind : list) {
    const bool changes = kind == SamplerKind::penalties || kind == SamplerKind::dry;
    check(!changes || !cut, "samplers", "penalties and dry must come before all others");
    check(std::ranges::count(list, kind) == 1, "samplers", "one is named twice");
    cut |= !changes;
  }
}

}  // namespace

std::optional<SamplerKind> parse_sampler(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, [](const auto& entry) { return entry.first; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

void validate(const SamplingParams& sampling) {
  check_range("temperature", sampling.temperature, 0, 100);
  check_range("top_p", sampling.top_p, 0, 1);
  check_range("min_p", sampling.min_p, 0, 1);
  check(sampling.top_k >= -1, "top_k", sampling.top_k, " is below -1");
  check(sampling.repetition_penalty > 0, "repetition_penalty", sampling.repetition_penalty,
        " is not above 0");
  check_range("repetition_penalty", sampling.repetition_penalty, 0, 2);
  check_range("frequency_penalty", sampling.frequency_penalty, -2, 2);
  check_range("presence_penalty", sampling.presence_penalty, -2, 2);
  check_range("repeat_last_n", sampling.repeat_last_n, 0, kMaxLookBack);
  check_range("typical_p", sampling.typical_p, 0, 1);
  check_range("top_n_sigma", sampling.top_n_sigma, -1, 100);
  check_range("xtc_probability", sampling.xtc_probability, 0, 1);
  check_range("xtc_threshold", sampling.xtc_threshold, 0, 1);
  check_range("dry_multiplier", sampling.dry_multiplier, 0, 100);
  check_range("dry_base", sampling.dry_base, 1, 100);
  check_range("dry_allowed_length", sampling.dry_allowed_length, 1, kMaxLookBack);
  check_range("dry_penalty_last_n", sampling.dry_penalty_last_n, -1, kMaxLookBack);
  check_texts("dry_sequence_breakers", sampling.dry_sequence_breakers, kMaxBreakers);
  check_range("dynatemp_range", sampling.dynatemp_range, 0, 100);
  check_range("dynatemp_exponent", sampling.dynatemp_exponent, 0, 10);
  check_range("mirostat", sampling.mirostat, 0, 2);
  check_range("mirostat_tau", sampling.mirostat_tau, 0, 100);
  check_range("mirostat_eta", sampling.mirostat_eta, 0, 1);
  check_biases(sampling.logit_bias);
  check(sampling.min_tokens >= 0, "min_tokens", sampling.min_tokens, " is negative");
  check_texts("bad_words", sampling.bad_words, kMaxBadWords);
  check_samplers(sampling.samplers);
}

}  // namespace rbee::engine
