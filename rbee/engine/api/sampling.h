#pragma once
// How a request chooses its tokens: values, ranges and the order of the samplers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::engine {

// Steps of the choice. penalties and dry change logits; temperature sharpens or flattens the
// distribution; the others cut the list of candidates.
enum class SamplerKind : uint8_t {
  penalties,
  dry,
  top_n_sigma,
  top_k,
  typical_p,
  top_p,
  min_p,
  xtc,
  temperature,
};

// A bias for one token's logit, or for all tokens of a text.
struct LogitBias {
  int32_t id = -1;   // a token; if negative, `text` is given
  std::string text;  // tokenised without special tokens around it
  float bias = 0;    // -infinity: never chosen
};

// Comments give neutral values as "x = off".
struct SamplingParams {
  float temperature = 0.8f;         // 0 = always the likeliest token
  int32_t top_k = 40;               // keep the k likeliest tokens; 0, -1 = off
  float top_p = 0.95f;              // keep this nucleus mass; 1 = off
  float min_p = 0.0f;               // keep this probability, relative to the likeliest; 0 = off
  float repetition_penalty = 1.0f;  // divides positive and multiplies negative logits; 1 = off
  float frequency_penalty = 0.0f;   // subtracted per occurrence; 0 = off
  float presence_penalty = 0.0f;    // subtracted once per token that occurred; 0 = off
  int32_t repeat_last_n = 64;       // tokens that the penalties look back; 0 = whole history
  bool penalise_prompt = true;      // frequency and presence penalties count the prompt too
  std::optional<uint64_t> seed;     // absent: the engine draws one and reports it

  float typical_p = 1.0f;    // keep this locally typical mass (Meister et al. 2023); 1 = off
  float top_n_sigma = 0.0f;  // keep logits within n standard deviations of the largest; 0, -1 = off
  // XTC: with this probability, drop all tokens of at least the threshold except the least likely
  // of them.
  float xtc_probability = 0.0f;  // 0 = off
  float xtc_threshold = 0.1f;
  // DRY: subtracts multiplier * base^(n - allowed_length) from a token that would continue a
  // repetition of n >= allowed_length tokens. A repetition does not cross a breaker.
  float dry_multiplier = 0.0f;  // 0 = off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = -1;  // tokens to look back; -1 = whole history, 0 = none
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  // The temperature varies with the entropy of the candidates: low + (high - low) * (entropy /
  // largest entropy)^exponent, where low and high are temperature - range and temperature + range.
  float dynatemp_range = 0.0f;  // 0 = off
  float dynatemp_exponent = 1.0f;
  // 1 or 2 = Mirostat (Basu et al. 2021) or its second form, which replaces all samplers that cut;
  // 0 = off.
  int32_t mirostat = 0;
  float mirostat_tau = 5.0f;  // target surprise, bits
  float mirostat_eta = 0.1f;  // learning rate

  std::vector<LogitBias> logit_bias;
  int32_t min_tokens = 0;              // the answer has at least so many
  bool ignore_eos = false;             // the model may not choose an end token
  std::vector<std::string> bad_words;  // texts that the answer may not contain
  // Samplers in this order; those not named are off. penalties and dry come first.
  std::vector<SamplerKind> samplers = {
      SamplerKind::penalties, SamplerKind::dry,       SamplerKind::top_n_sigma,
      SamplerKind::top_k,     SamplerKind::typical_p, SamplerKind::top_p,
      SamplerKind::min_p,     SamplerKind::xtc,       SamplerKind::temperature};
};

// The model's recommended values, for fields that a request leaves out.
struct SamplingDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int32_t> top_k;
  friend bool operator==(const SamplingDefaults&, const SamplingDefaults&) = default;
};

// "penalties", "dry", "top_n_sigma", "top_k", "typ_p" (or "typical_p"), "top_p", "min_p", "xtc",
// "temperature". Absent for other names.
std::optional<SamplerKind> parse_sampler(std::string_view name);
// The first of a kind's names.
std::string_view sampler_name(SamplerKind kind);
// Those names, for messages.
inline constexpr std::string_view kSamplerNames =
    "penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature";

// Bounds that several request parsers check.
inline constexpr int32_t kMaxLookBack = 1 << 20;
inline constexpr size_t kMaxBiases = 1024;
inline constexpr size_t kMaxBreakers = 32;
inline constexpr size_t kMaxBadWords = 64;
inline constexpr size_t kMaxWordBytes = 100;
inline constexpr size_t kMaxSamplers = 16;
inline constexpr float kMaxBias = 100;

// Throws invalid_argument naming field, value and range.
void validate(const SamplingParams& sampling);

}  // namespace rbee::engine
