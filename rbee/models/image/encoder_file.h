#pragma once
// Text encoders (all but Stable Diffusion 2's) apart from their denoiser: in a file of their own,
// in a file of several parts, or in a folder of a diffusers model.

#include <optional>

#include "rbee/models/image/model_files.h"

namespace rbee::models {

enum class EncoderRole : uint8_t { clip_l, clip_g, t5xxl, llm };
inline constexpr EncoderRole kEncoderRoles[] = {EncoderRole::clip_l, EncoderRole::clip_g,
                                                EncoderRole::t5xxl, EncoderRole::llm};
const char* name(EncoderRole role);  // "clip_l", ...

// The family's part with this role, e.g. "text_encoder_2"; nothing if the family has none.
std::optional<std::string> encoder_part(ImageFamily family, EncoderRole role);

// The encoder in a file of several parts; nothing if the file does not have it.
std::optional<ModelPart> find_encoder(const io::Checkpoint& file, ImageFamily family,
                                      EncoderRole role, const std::string& source);

// A .safetensors or .gguf file with Hugging Face's names, T5 and language models also with
// llama.cpp's; or a folder with config.json. Throws invalid_argument for a role that the family
// does not have, unsupported if the file is not such an encoder, and what Checkpoint::open throws.
ModelPart read_encoder(const std::filesystem::path& path, ImageFamily family, EncoderRole role);

}  // namespace rbee::models
