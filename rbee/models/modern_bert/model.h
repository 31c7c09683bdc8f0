#pragma once

#include <memory>

#include "rbee/models/embedding_model.h"

namespace rbee::models {

// For embeddings, or with a head that ranks.
std::unique_ptr<EmbeddingModel> load_modern_bert(const io::Checkpoint& checkpoint,
                                                 const LoadOptions& options);

}  // namespace rbee::models
