#pragma once
// TAESD, TAESDXL, TAESD3 and TAEF1 in files of their own.

#include <optional>

#include "rbee/models/image/model_files.h"

namespace rbee::models {

// Accepts the names of diffusers ("decoder.layers.2..."), of the authors' module ("decoder.3..."),
// of ComfyUI ("taesd_decoder.3...") and of the authors' files of one half ("3..."), with the other
// half beside it ("taesd_encoder.safetensors" for "taesd_decoder.safetensors"). Settings come from
// the tensors, or from a config.json of an AutoencoderTiny beside the file. Nothing if the file has
// no such tensors. Throws as Checkpoint::open, and not_found for a file without a decoder.
std::optional<ModelPart> find_tiny_file(const std::filesystem::path& path);

}  // namespace rbee::models
