#pragma once
// Prompts that change while a picture is made, and prompts of several parts, as AUTOMATIC1111
// reads them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::diffusion {

// What the numbers in a prompt count: calls of the denoiser, as AUTOMATIC1111 expects them of the
// sampler (see calls_per_step). Those of a second pass go on where the first pass's end.
struct PromptCalls {
  int32_t calls = 20;  // of this pass, at least 1
  int32_t before = 0;  // of the pass before it; 0: this is the first
};

// What a prompt is up to and with call `last`, the first call being number 0.
struct PromptAt {
  int32_t last = 0;
  std::string text;
};

// [from:to:when] is `from` up to and with call `when`, then `to`; [to:when] begins and
// [from::when] ends there. `when` is a number of calls, or, written with a point, a share of the
// pass's calls: 0.5, of a second pass 1.5. [a|b|c] is the next of its parts at each call; call 0
// has the part of call 1. All nested, also within round brackets, whose colons are weights. A
// backslash makes the next character an ordinary one. Other square brackets, those that are not
// closed, and what stands in more than 64 of them stay as they are; any text is a prompt. At least
// one entry, in the order of their calls, neighbours differ, the last one's is `calls`.
std::vector<PromptAt> schedule_prompt(std::string_view prompt, const PromptCalls& calls);

// What the prompt is at a call; after the last entry's what it is there.
const PromptAt& prompt_at(const std::vector<PromptAt>& schedule, int32_t call);

struct PromptShare {
  std::string text;
  // Of what the prompt adds to the negative one's picture (Liu et al. 2022), -1000 to 1000.
  float weight = 1;
};
// "a cat :1.2 AND a dog": the parts around the word AND, with the weights behind them. A prompt
// without the word is one part, whatever it ends with.
std::vector<PromptShare> split_prompt(std::string_view prompt);

}  // namespace rbee::diffusion
