#pragma once
// Layers after pooling: the Dense modules of sentence-transformers.

#include <filesystem>
#include <memory>
#include <span>

#include "rbee/models/embedding_model.h"

namespace rbee::models {

// The model followed by these modules, in f32; the model itself if there are none. checkpoint: the
// model's, at `folder` or a file in it. Throws as load_embedding_model().
std::unique_ptr<EmbeddingModel> with_dense_modules(std::unique_ptr<EmbeddingModel> model,
                                                   std::span<const DenseModule> modules,
                                                   const io::Checkpoint& checkpoint,
                                                   const std::filesystem::path& folder,
                                                   const LoadOptions& options);

}  // namespace rbee::models
