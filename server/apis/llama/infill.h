#pragma once
// Prompts of models that were trained to fill a gap between two texts.

#include <cstdint>
#include <vector>

#include "rbee/engine/api/text.h"
#include "server/apis/llama/request.h"

namespace rbee::server {

// Whether the model has tokens for it.
bool can_fill_in(const engine::TextEngine& engine);
// Other files, what is before the place, what is behind it, and the mark of the middle. Texts that
// are too long lose their far ends: three parts of the room are for what is before.
// Throws unsupported if the model has no tokens for it. Uses before, after, files and max_tokens.
std::vector<int32_t> infill_prompt(const engine::TextEngine& engine, const LlamaRequest& request);

}  // namespace rbee::server
