#pragma once
// An engine for the command line whose tokens may be guessed ahead.

#include <memory>

#include "rbee/engine/llm_engine.h"
#include "tools/rbee/model_options.h"
#include "workers/common/guess_flags.h"

namespace rbee::tools {

// Loads the model, and the draft model where there is one. What `options` say of guesses is
// `guess`.
std::unique_ptr<engine::Engine> make_engine(const ModelOptions& model,
                                            const workers::GuessFlags& guess,
                                            engine::LlmOptions options);

}  // namespace rbee::tools
