#pragma once

#include <memory>
#include <span>

#include "rbee/models/language_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

std::unique_ptr<LanguageModel> load_llama_moe(const io::Checkpoint& checkpoint,
                                              const LoadOptions& options);
// Each architecture's weights under the names of both formats.
std::span<const nn::TensorName> glm4_moe_tensor_names();
std::span<const nn::TensorName> minimax_m2_tensor_names();
std::span<const nn::TensorName> ernie4_5_moe_tensor_names();
std::span<const nn::TensorName> hunyuan_moe_tensor_names();

}  // namespace rbee::models
