#pragma once
// A request's prompts at each call of the denoiser, as indices into its texts.

#include <cstdint>
#include <string>
#include <vector>

#include "rbee/engine/image/settings.h"

namespace rbee::engine {

// Each text once; prompts and negative prompts are separate.
struct PromptTexts {
  std::vector<std::string> positive;
  std::vector<std::string> negative;  // empty for a model that reads none
  bool operator==(const PromptTexts&) const = default;
};

// The texts of one call. All calls of a pass have the same number of prompt parts, in one order.
struct CallTexts {
  std::vector<size_t> positive;  // into PromptTexts::positive, one for each part between ANDs
  size_t negative = 0;           // into PromptTexts::negative; if that is empty, into positive
  bool operator==(const CallTexts&) const = default;
};

struct PassPrompts {
  std::vector<float> weights{1};  // of the parts, see diffusion::split_prompt
  std::vector<CallTexts> calls;   // each combination once
  // Up to and including call `last`, the prompts are calls[index]; in the order of the calls.
  struct Turn {
    int32_t last = 0;
    size_t index = 0;
  };
  std::vector<Turn> turns;

  // The index in `calls` for a call of the denoiser, from 0; after the last turn, that turn's.
  size_t at(int32_t call) const;
  // Whether the negative prompt is needed at any guidance.
  bool composed() const { return weights.size() != 1 || weights.front() != 1; }
};

struct RequestPrompts {
  PromptTexts texts;
  PassPrompts first;
  PassPrompts second;  // of a second pass, else empty
};

// `guided`: whether the model reads a negative prompt. Only PromptRule::a1111 has parts and texts
// that change. Throws invalid_argument for more than 128 texts.
RequestPrompts read_prompts(const ImageRequest& request, const ImageSettings& settings,
                            bool guided);

// Number of parts of the prompt between ANDs.
size_t prompt_parts(const ImageRequest& request);

}  // namespace rbee::engine
