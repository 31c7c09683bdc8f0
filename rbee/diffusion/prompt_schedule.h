#pragma once
// AUTOMATIC1111's prompt editing (prompts that change during sampling) and its prompts of several
// parts (AND).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::diffusion {

// The unit of numbers in a prompt: calls of the denoiser, as AUTOMATIC1111 counts them for the
// sampler (see calls_per_step). A second pass continues the first pass's count.
struct PromptCalls {
  int32_t calls = 20;  // of this pass, at least 1
  int32_t before = 0;  // of the pass before; 0: this is the first
};

// The prompt up to and including call `last`; the first call is number 0.
struct PromptAt {
  int32_t last = 0;
  std::string text;
};

// [from:to:when] is `from` up to and including call `when`, then `to`; [to:when] begins and
// [from::when] ends there. `when` is a number of calls, or, with a decimal point, a share of the
// pass's calls: 0.5, or 1.5 in a second pass. [a|b|c] takes its next part at each call; call 0 has
// the part of call 1. All may be nested, also within round brackets, whose colons are weights. A
// backslash makes the next character ordinary. Other square brackets, unclosed ones, and text in
// more than 64 of them do not change, so any text is a prompt. Gives at least one entry, in the
// order of their calls. Neighbours differ, and the last entry's `last` is `calls`.
std::vector<PromptAt> schedule_prompt(std::string_view prompt, const PromptCalls& calls);

// The prompt at a call; after the last entry, the last entry's.
const PromptAt& prompt_at(const std::vector<PromptAt>& schedule, int32_t call);

struct PromptShare {
  std::string text;
  // The weight of this prompt's difference from the negative prompt's picture (Liu et al. 2022),
  // -1000 to 1000.
  float weight = 1;
};
// "a cat :1.2 AND a dog": the parts around the word AND, with the weights after them. A prompt
// without AND is one part, whatever its end looks like.
std::vector<PromptShare> split_prompt(std::string_view prompt);

}  // namespace rbee::diffusion
