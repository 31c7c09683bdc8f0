#pragma once
// The fields of a request for text that choose its tokens.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rbee::server {

class ObjectReader;

// Ranges and meanings are those of rbee/engine/api/sampling.h; what was absent or null is empty.
struct SamplingFields {
  // Of one token, or where `id` is below 0, of those of a text.
  struct Bias {
    int32_t id = -1;
    std::string text;
    float bias = 0;  // -infinity: never
  };

  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<int32_t> top_k;
  std::optional<float> repetition_penalty;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<int32_t> repeat_last_n;
  bool penalise_prompt = true;  // no field of bodies: as the route's API has it
  std::optional<uint64_t> seed;
  std::optional<float> typical_p;
  std::optional<float> top_n_sigma;
  std::optional<float> xtc_probability, xtc_threshold;
  std::optional<float> dry_multiplier, dry_base;
  std::optional<int32_t> dry_allowed_length, dry_penalty_last_n;
  std::optional<std::vector<std::string>> dry_sequence_breakers;
  std::optional<float> dynatemp_range, dynatemp_exponent;
  std::optional<int32_t> mirostat;
  std::optional<float> mirostat_tau, mirostat_eta;
  std::vector<Bias> logit_bias;
  std::optional<int32_t> min_tokens;
  std::optional<bool> ignore_eos;
  std::vector<std::string> bad_words;
  std::optional<std::vector<std::string>> samplers;  // names that the engine knows
};

void read_sampling(ObjectReader& reader, SamplingFields& fields);

}  // namespace rbee::server
