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
     .words = "0 = always the likeliest token",
     .anthropic = {"temperature", {}, 1},
     .cohere = {"temperature"},
     .ollama = {"temperature"}},
    {.name = "top_p",
     .member = &P::top_p,
     .high = 1,
     .words = "mass of the likeliest tokens kept; 1 = off",
     .anthropic = {"top_p"},
     .cohere = {"p"},
     .ollama = {"top_p"}},
    {.name = "min_p",
     .member = &P::min_p,
     .high = 1,
     .words = "least probability kept, relative to the likeliest token; 0 = off",
     .ollama = {"min_p"}},
    {.name = "top_k",
     .member = &P::top_k,
     .low = -1,
     .high = INT32_MAX,
     .words = "likeliest tokens kept; 0, -1 = off",
     .anthropic = {"top_k", 0},
     .cohere = {"k", 0},
     .ollama = {"top_k"}},
    {.name = "repetition_penalty",
     .member = &P::repetition_penalty,
     .high = 2,
     .words = "divides the logits above 0 of tokens that occurred, multiplies the others; 1 = off",
     .above_low = true,
     .alias = "repeat_penalty",
     .ollama = {"repeat_penalty"}},
    {.name = "frequency_penalty",
     .member = &P::frequency_penalty,
     .low = -2,
     .high = 2,
     .words = "subtracted from a logit for each time that its token occurred; 0 = off",
     .cohere = {"frequency_penalty"},
     .ollama = {"frequency_penalty"}},
    {.name = "presence_penalty",
     .member = &P::presence_penalty,
     .low = -2,
     .high = 2,
     .words = "subtracted once from the logit of a token that occurred; 0 = off",
     .cohere = {"presence_penalty"},
     .ollama = {"presence_penalty"}},
    {.name = "repeat_last_n",
     .member = &P::repeat_last_n,
     .high = kMaxLookBack,
     .words = "tokens of prompt and answer that these penalties look back; 0 = all",
     .ollama = {"repeat_last_n", -1}},
    {.name = "seed",
     .member = &P::seed,
     .words = "of the random numbers; absent, or below 0: a fresh one, which is told",
     .cohere = {"seed"},
     .ollama = {"seed"}},
    {.name = "typical_p",
     .member = &P::typical_p,
     .high = 1,
     .words = "mass of locally typical tokens kept; 1 = off",
     .ollama = {"typical_p"}},
    {.name = "top_n_sigma",
     .member = &P::top_n_sigma,
     .low = -1,
     .high = 100,
     .words = "tokens kept: within so many standard deviations of the largest logit; 0, -1 = off"},
    {.name = "xtc_probability",
     .member = &P::xtc_probability,
     .high = 1,
     .words = "how often XTC leaves out all tokens of at least xtc_threshold except the least "
              "likely of them; 0 = off"},
    {.name = "xtc_threshold",
     .member = &P::xtc_threshold,
     .high = 1,
     .words = "least probability of the tokens that XTC leaves out; above 0.5 = off"},
    {.name = "dry_multiplier",
     .member = &P::dry_multiplier,
     .high = 100,
     .words = "DRY: penalty of a token that would repeat what came before; 0 = off"},
    {.name = "dry_base",
     .member = &P::dry_base,
     .low = 1,
     .high = 100,
     .words = "DRY: how the penalty grows with the length of the repetition"},
    {.name = "dry_allowed_length",
     .member = &P::dry_allowed_length,
     .low = 1,
     .high = kMaxLookBack,
     .words = "DRY: tokens of a repetition from which on it is penalised"},
    {.name = "dry_penalty_last_n",
     .member = &P::dry_penalty_last_n,
     .low = -1,
     .high = kMaxLookBack,
     .words = "DRY: tokens looked back; -1 = all, 0 = none"},
    {.name = "dry_sequence_breakers",
     .member = &P::dry_sequence_breakers,
     .high = kMaxBreakers,
     .words = "DRY: texts that end a repetition, 1 to 100 bytes each"},
    {.name = "dynatemp_range",
     .member = &P::dynatemp_range,
     .high = 100,
     .words = "how far the temperature follows the entropy, up and down; 0 = off"},
    {.name = "dynatemp_exponent",
     .member = &P::dynatemp_exponent,
     .high = 10,
     .words = "how the temperature follows the entropy"},
    {.name = "mirostat",
     .member = &P::mirostat,
     .high = 2,
     .words = "1 or 2: Mirostat or its second form, in place of the samplers that cut; 0 = off",
     .ollama = {"mirostat"}},
    {.name = "mirostat_tau",
     .member = &P::mirostat_tau,
     .high = 100,
     .words = "Mirostat: surprise aimed at, in bits",
     .ollama = {"mirostat_tau"}},
    {.name = "mirostat_eta",
     .member = &P::mirostat_eta,
     .high = 1,
     .words = "Mirostat: learning rate",
     .ollama = {"mirostat_eta"}},
    {.name = "logit_bias",
     .member = &P::logit_bias,
     .high = kMaxBiases,
     .words = "added to logits of tokens: -100 to 100, or false: never"},
    {.name = "min_tokens",
     .member = &P::min_tokens,
     .high = INT32_MAX,
     .words = "the answer does not end by itself before so many tokens, nor by a text of stop"},
    {.name = "ignore_eos", .member = &P::ignore_eos, .words = "the answer does not end by itself"},
    {.name = "bad_words",
     .member = &P::bad_words,
     .high = kMaxBadWords,
     .words = "texts that never come, 1 to 100 bytes each, also after a space"},
    {.name = "samplers",
     .member = &P::samplers,
     .high = kMaxSamplers,
     .words = "the order of the samplers; what is not named is off, and penalties and dry come "
              "before the others"},
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
