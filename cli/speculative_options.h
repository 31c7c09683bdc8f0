#pragma once
// An engine for the command line whose tokens may be drafted ahead.

#include <memory>

#include "cli/model_options.h"
#include "rbee/engine/text/llm_engine.h"
#include "workers/common/speculative_flags.h"

namespace rbee::tools {

// Loads the model, and the draft model where there is one. What `options` say of draft tokens is
// `flags`.
std::unique_ptr<engine::TextEngine> make_engine(const ModelOptions& model,
                                                const workers::SpeculativeFlags& flags,
                                                engine::LlmOptions options);

}  // namespace rbee::tools
