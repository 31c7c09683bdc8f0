#pragma once

#include <memory>
#include <span>

#include "rbee/models/language_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

std::unique_ptr<LanguageModel> load_qwen2_moe(const io::Checkpoint& checkpoint,
                                              const LoadOptions& options);
std::unique_ptr<LanguageModel> load_qwen3_moe(const io::Checkpoint& checkpoint,
                                              const LoadOptions& options);
// Both families' weights under the names of both formats.
std::span<const nn::TensorName> qwen_moe_tensor_names();

}  // namespace rbee::models
