#pragma once

#include <memory>
#include <span>

#include "rbee/models/language_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

std::unique_ptr<LanguageModel> load_llama(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options);
// The family's weights under the names of both formats.
std::span<const nn::TensorName> llama_tensor_names();
// The same with other names of a few.
std::span<const nn::TensorName> seed_oss_tensor_names();
std::span<const nn::TensorName> hunyuan_tensor_names();

}  // namespace rbee::models
