#pragma once
// From prompts to the denoiser's inputs: weights, chunks, the text encoders, and their states for
// guidance.

#include "rbee/diffusion/prompt.h"
#include "rbee/engine/image/prompts.h"
#include "rbee/engine/image/source.h"

namespace rbee::engine {

// States of each of PromptTexts, one row each (batch 1). Without negative texts, `negative` has the
// positive states.
struct PromptStates {
  std::vector<models::TextStates> positive;
  std::vector<models::TextStates> negative;
};

// Runs every text through every encoder, with as many chunks as the longest text has. Reads only
// rule, emphasis and clip_skip of the request. Calls `between` before each call of an encoder; it
// may throw. Throws invalid_argument for clip_skip beyond the layers and for more than 512 chunks
// in all, and what the encoders throw.
PromptStates encode_prompts(const ImageSource& source, const ImageRequest& request,
                            const PromptTexts& texts, const models::Between& between = {});

// x repeated `count` times along the first axis; undefined stays undefined.
Tensor repeated_rows(const Tensor& x, int64_t count);
// The states of `count` samples of one prompt: rows repeated.
models::TextStates repeated(const models::TextStates& states, int64_t count);
// Rows of the first, then of the second, and so on; at least one. Shorter contexts get zeros behind
// them, and every row its number of tokens. The states given have no such numbers.
models::TextStates joined(const std::vector<models::TextStates>& states);

// Scales token i's states by weights[i], and with Emphasis::original rescales all so that their
// mean stays (A1111). hidden: tokens * width values.
void weigh_states(std::span<float> hidden, std::span<const float> weights,
                  Emphasis emphasis = Emphasis::original);
// Moves token i's states away from those of the empty prompt, weights[i] times as far (ComfyUI).
void weigh_states(std::span<float> hidden, std::span<const float> weights,
                  std::span<const float> empty);

}  // namespace rbee::engine
