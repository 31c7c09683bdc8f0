#pragma once
// How much device memory a language model takes, before it is loaded.

#include <cstdint>
#include <filesystem>

#include "rbee/engine/text/text_model.h"

namespace rbee::engine {

// An estimate in bytes, from the files' headers: weights as they are in the files, keys and
// values of one context in 16 bits, and room for kernels and steps. Reads mmproj and context of the
// options. Throws as load_text_model() does if the files cannot be opened.
int64_t text_model_memory(const std::filesystem::path& path, const TextModelOptions& options);

}  // namespace rbee::engine
