#pragma once

#include <memory>

#include "rbee/models/embedding_model.h"

namespace rbee::models {

std::unique_ptr<EmbeddingModel> load_nomic_bert(const io::Checkpoint& checkpoint,
                                                const LoadOptions& options);

}  // namespace rbee::models
