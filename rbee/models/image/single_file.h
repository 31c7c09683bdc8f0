#pragma once
// Checkpoints that hold a whole model in one file, as CompVis, Stability AI and
// stable-diffusion.cpp write them: .safetensors or .gguf.

#include "rbee/models/image/model_files.h"

namespace rbee::models {

// A file may hold the denoiser alone, or with some of the others; what it lacks is given besides.
//
// The parts of the file under the names of a diffusers folder. Settings that the tensors do not say
// are those of the family that they belong to. Throws not_found when tensors are missing,
// unsupported when the family is not implemented or not recognised, and what Checkpoint::open
// throws.
ModelFiles read_single_file(const std::filesystem::path& path);

// A VAE in a file of its own, with or without "first_stage_model." or "vae." before its names.
ModelPart read_vae_file(const std::filesystem::path& path, ImageFamily family);

}  // namespace rbee::models
