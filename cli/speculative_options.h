#pragma once
// An engine for the command line that may use draft tokens.

#include <memory>

#include "cli/model_options.h"
#include "rbee/engine/text/llm_engine.h"
#include "workers/common/speculative_flags.h"

namespace rbee::tools {

// Loads the model, and the draft model if there is one. `flags` replace the draft settings of
// `options`.
std::unique_ptr<engine::TextEngine> make_engine(ModelOptions model,
                                                const workers::SpeculativeFlags& flags,
                                                engine::LlmOptions options);

}  // namespace rbee::tools
