#pragma once
// How much GPU memory an image model takes, before it is loaded.

#include <cstdint>
#include <filesystem>

#include "rbee/engine/image/source.h"

namespace rbee::engine {

// An estimate in bytes, from the files' headers: the weights that are on the GPU at once, control
// nets, and room for a picture of the model's own size. Throws as load_image_source() does if the
// files cannot be opened.
int64_t image_model_memory(const std::filesystem::path& path, const ImageSourceOptions& options);

}  // namespace rbee::engine
