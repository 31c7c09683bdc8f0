#pragma once
// What a request's prompts are at each call of the denoiser, as indices into the texts that they
// take.

#include <cstdint>
#include <string>
#include <vector>

#include "rbee/engine/image/settings.h"

namespace rbee::engine {

// Every text once, those of the prompt and those of the negative prompt apart.
struct PromptTexts {
  std::vector<std::string> positive;
  std::vector<std::string> negative;  // empty for a model that reads none
  bool operator==(const PromptTexts&) const = default;
};

// One call's texts. All calls of a pass have as many parts of the prompt, in one order.
struct Said {
  std::vector<size_t> positive;  // into PromptTexts::positive, one for each part between ANDs
  size_t negative = 0;           // into PromptTexts::negative; where that is empty, positive's
  bool operator==(const Said&) const = default;
};

struct PassPrompts {
  std::vector<float> weights{1};  // of the parts, see diffusion::split_prompt
  std::vector<Said> said;         // each once
  // Up to and with call `last` the prompts are said[index]; in the order of the calls.
  struct Turn {
    int32_t last = 0;
    size_t index = 0;
  };
  std::vector<Turn> turns;

  // At a call of the denoiser, the first being 0; after the last turn's what it is there.
  size_t at(int32_t call) const;
  // Whether the negative prompt is needed whatever the guidance.
  bool composed() const { return weights.size() != 1 || weights.front() != 1; }
};

struct RequestPrompts {
  PromptTexts texts;
  PassPrompts first;
  PassPrompts second;  // of a second pass, else empty
};

// `guided`: whether the model reads a negative prompt. PromptRule::a1111 alone has parts and texts
// that change. Throws invalid_argument for more than 128 texts.
RequestPrompts read_prompts(const ImageRequest& request, const ImageSettings& settings,
                            bool guided);

// Of the prompt between ANDs.
size_t prompt_parts(const ImageRequest& request);

}  // namespace rbee::engine
