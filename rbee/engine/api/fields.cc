#include "rbee/engine/api/fields.h"

#include <algorithm>
#include <array>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

using P = SamplingParams;

constexpr SamplingField kFields[] = {
    {.name = "temperature",
     .member = &P::temperature,
     .high = 100,
     .words = "0 = greedy: always the most likely token",
     .anthropic = {"temperature", {}, 1},
     .cohere = {"temperature"},
     .ollama = {"temperature"}},
    {.name = "top_p",
     .member = &P::top_p,
     .high = 1,
     .words = "keep the most likely tokens up to this total probability; 1 = off",
     .anthropic = {"top_p"},
     .cohere = {"p"},
     .ollama = {"top_p"}},
    {.name = "min_p",
     .member = &P::min_p,
     .high = 1,
     .words = "keep tokens at least this probable, relative to the most likely one; 0 = off",
     .ollama = {"min_p"}},
    {.name = "top_k",
     .member = &P::top_k,
     .low = -1,
     .high = INT32_MAX,
     .words = "keep this many of the most likely tokens; 0 or -1 = off",
     .anthropic = {"top_k", 0},
     .cohere = {"k", 0},
     .ollama = {"top_k"}},
    {.name = "repetition_penalty",
     .member = &P::repetition_penalty,
     .high = 2,
     .words =
         "divides positive logits of tokens that occurred and multiplies negative ones; 1 = off",
     .above_low = true,
     .alias = "repeat_penalty",
     .ollama = {"repeat_penalty"}},
    {.name = "frequency_penalty",
     .member = &P::frequency_penalty,
     .low = -2,
     .high = 2,
     .words = "subtracted from a token's logit for each time it occurred; 0 = off",
     .cohere = {"frequency_penalty"},
     .ollama = {"frequency_penalty"}},
    {.name = "presence_penalty",
     .member = &P::presence_penalty,
     .low = -2,
     .high = 2,
     .words = "subtracted once from the logit of each token that occurred; 0 = off",
     .cohere = {"presence_penalty"},
     .ollama = {"presence_penalty"}},
    {.name = "repeat_last_n",
     .member = &P::repeat_last_n,
     .high = kMaxLookBack,
     .words = "these penalties count this many of the last tokens of prompt and answer; 0 = all",
     .ollama = {"repeat_last_n", -1}},
    {.name = "seed",
     .member = &P::seed,
     .words = "seed of the random numbers; if it is absent or negative, the engine draws and "
              "reports one",
     .cohere = {"seed"},
     .ollama = {"seed"}},
    {.name = "typical_p",
     .member = &P::typical_p,
     .high = 1,
     .words = "keep the most locally typical tokens up to this total probability; 1 = off",
     .ollama = {"typical_p"}},
    {.name = "top_n_sigma",
     .member = &P::top_n_sigma,
     .low = -1,
     .high = 100,
     .words = "keep tokens whose logit is within this many standard deviations of the largest; 0 "
              "or -1 = off"},
    {.name = "xtc_probability",
     .member = &P::xtc_probability,
     .high = 1,
     .words = "how often XTC drops all tokens of at least xtc_threshold except the least likely of "
              "them; 0 = off"},
    {.name = "xtc_threshold",
     .member = &P::xtc_threshold,
     .high = 1,
     .words = "XTC drops only tokens at least this probable; above 0.5 = off"},
    {.name = "dry_multiplier",
     .member = &P::dry_multiplier,
     .high = 100,
     .words = "DRY: scale of the penalty for a token that would continue a repetition; 0 = off"},
    {.name = "dry_base",
     .member = &P::dry_base,
     .low = 1,
     .high = 100,
     .words = "DRY: each further token of a repetition multiplies the penalty by this"},
    {.name = "dry_allowed_length",
     .member = &P::dry_allowed_length,
     .low = 1,
     .high = kMaxLookBack,
     .words = "DRY: tokens of the shortest repetition that is penalised"},
    {.name = "dry_penalty_last_n",
     .member = &P::dry_penalty_last_n,
     .low = -1,
     .high = kMaxLookBack,
     .words = "DRY: how many of the last tokens are searched; -1 = all, 0 = none"},
    {.name = "dry_sequence_breakers",
     .member = &P::dry_sequence_breakers,
     .high = kMaxBreakers,
     .words = "DRY: a repetition does not cross these texts, 1 to 100 bytes each"},
    {.name = "dynatemp_range",
     .member = &P::dynatemp_range,
     .high = 100,
     .words = "dynamic temperature: how far the entropy moves it up or down; 0 = off"},
    {.name = "dynatemp_exponent",
     .member = &P::dynatemp_exponent,
     .high = 10,
     .words = "dynamic temperature: exponent of the relative entropy"},
    {.name = "mirostat",
     .member = &P::mirostat,
     .high = 2,
     .words = "1 or 2 = Mirostat of that version, which replaces the truncating samplers; 0 = off",
     .ollama = {"mirostat"}},
    {.name = "mirostat_tau",
     .member = &P::mirostat_tau,
     .high = 100,
     .words = "Mirostat: target surprise, in bits",
     .ollama = {"mirostat_tau"}},
    {.name = "mirostat_eta",
     .member = &P::mirostat_eta,
     .high = 1,
     .words = "Mirostat: learning rate",
     .ollama = {"mirostat_eta"}},
    {.name = "logit_bias",
     .member = &P::logit_bias,
     .high = kMaxBiases,
     .words = "added to the logits of these tokens: -100 to 100, or false to forbid one"},
    {.name = "min_tokens",
     .member = &P::min_tokens,
     .high = INT32_MAX,
     .words = "neither an end token nor a stop text ends the answer before this many tokens"},
    {.name = "ignore_eos",
     .member = &P::ignore_eos,
     .words = "the model cannot choose an end token"},
    {.name = "bad_words",
     .member = &P::bad_words,
     .high = kMaxBadWords,
     .words = "texts that the answer never contains, also after a space; 1 to 100 bytes each"},
    {.name = "samplers",
     .member = &P::samplers,
     .high = kMaxSamplers,
     .words = "order of the samplers; those not named are off; penalties and dry come first"},
};
static_assert(std::size(kFields) <= 64);  // bits of a SamplingFieldSet

}  // namespace

ApiField SamplingField::in(SamplingApi api) const {
  const ApiField field = api == SamplingApi::anthropic ? anthropic
                         : api == SamplingApi::cohere  ? cohere
                         : api == SamplingApi::ollama  ? ollama
                                                       : ApiField{.name = name};
  return {field.name, field.low.value_or(low), field.high.value_or(high)};
}

std::span<const SamplingField> sampling_fields() {
  return kFields;
}

uint64_t SamplingFieldSet::bit(const SamplingField::Member& member) {
  const auto at = std::ranges::find(kFields, member, &SamplingField::member);
  RB_ASSERT(at != std::end(kFields));
  return uint64_t{1} << (at - std::begin(kFields));
}

}  // namespace rbee::engine
