#pragma once
// From prompts to what a denoiser reads: weights, chunks, the text encoders, and their states for
// guidance.

#include "rbee/diffusion/prompt.h"
#include "rbee/engine/image/prompts.h"
#include "rbee/engine/image/source.h"

namespace rbee::engine {

// States of each of PromptTexts, one row each (batch 1). Where it has no negative ones, they are
// the positive ones.
struct PromptStates {
  std::vector<models::TextStates> positive;
  std::vector<models::TextStates> negative;
};

// Every text through every encoder, with as many chunks as the longest one has. Of the request the
// rule, emphasis and clip_skip are read. `between` is called before each call of an encoder and may
// throw. Throws invalid_argument for clip_skip beyond the layers and more than 512 chunks in all,
// and what the encoders throw.
PromptStates encode_prompts(const ImageSource& source, const ImageRequest& request,
                            const PromptTexts& texts, const models::Between& between = {});

// x, `count` times one after another along the first axis; undefined stays so.
Tensor repeated_rows(const Tensor& x, int64_t count);
// The states of `count` samples of one prompt: rows repeated.
models::TextStates repeated(const models::TextStates& states, int64_t count);
// Rows of the first, then of the second, and so on; at least one.
models::TextStates joined(const std::vector<models::TextStates>& states);

// Scales token i's states by weights[i], and with Emphasis::original the whole so that its mean
// stays (A1111). hidden: tokens * width values.
void weigh_states(std::span<float> hidden, std::span<const float> weights,
                  Emphasis emphasis = Emphasis::original);
// Moves token i's states away from those of the empty prompt, weights[i] times as far (ComfyUI).
void weigh_states(std::span<float> hidden, std::span<const float> weights,
                  std::span<const float> empty);

}  // namespace rbee::engine
