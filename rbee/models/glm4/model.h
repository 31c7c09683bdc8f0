#pragma once

#include <memory>
#include <span>

#include "rbee/models/language_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

std::unique_ptr<LanguageModel> load_glm4(const io::Checkpoint& checkpoint,
                                         const LoadOptions& options);
// The family's weights under the names of both formats.
std::span<const nn::TensorName> glm4_tensor_names();

}  // namespace rbee::models
