#pragma once

#include <memory>
#include <span>

#include "rbee/models/embedding_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

// For embeddings, or with a ranking head.
std::unique_ptr<EmbeddingModel> load_modern_bert(const io::Checkpoint& checkpoint,
                                                 const LoadOptions& options);

std::span<const nn::TensorName> modern_bert_tensor_names();

}  // namespace rbee::models
