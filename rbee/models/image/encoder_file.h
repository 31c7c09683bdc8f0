#pragma once
// Text encoders (all but Stable Diffusion 2's) apart from their denoiser: in files of their own,
// within a file of several parts, or as a folder of a diffusers model.

#include <optional>

#include "rbee/models/image/model_files.h"

namespace rbee::models {

enum class EncoderRole : uint8_t { clip_l, clip_g, t5xxl };
const char* name(EncoderRole role);  // "clip_l", ...

// The part that a role is in a family, "text_encoder_2"; nothing when the family has none of it.
std::optional<std::string> encoder_part(ImageFamily family, EncoderRole role);

// Of a file that holds several parts; nothing when this one is not there.
std::optional<ModelPart> find_encoder(const io::Checkpoint& file, ImageFamily family,
                                      EncoderRole role, const std::string& source);

// A .safetensors or .gguf file with Hugging Face's names, T5 also with llama.cpp's; or a folder
// with config.json. Throws invalid_argument for a role that the family does not have, unsupported
// when the file is no such encoder, and what Checkpoint::open throws.
ModelPart read_encoder(const std::filesystem::path& path, ImageFamily family, EncoderRole role);

}  // namespace rbee::models
