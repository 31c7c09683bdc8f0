#pragma once

#include <memory>

#include "rbee/models/language_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

std::span<const nn::TensorName> qwen3_next_tensor_names();

// Qwen3-Next, and the text of Qwen3.5 to 3.8: dense ones and mixtures of experts. Leaves the vision
// tower and the layer for drafts (MTP). Throws as load_language_model() does.
std::unique_ptr<LanguageModel> load_qwen3_next(const io::Checkpoint& checkpoint,
                                               const LoadOptions& options);

}  // namespace rbee::models
