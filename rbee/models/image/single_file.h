#pragma once
// Checkpoints that hold a whole model in one file, as CompVis, Stability AI and
// stable-diffusion.cpp write them: .safetensors or .gguf.

#include "rbee/models/image/model_files.h"

namespace rbee::models {

// A file may hold only the denoiser, or also some of the other parts; the caller gives the missing
// ones.
//
// The parts of the file under the names of a diffusers folder. Settings that the tensors do not
// show are the family's. Throws not_found if tensors are missing, unsupported if the family is not
// implemented or not recognised, and what Checkpoint::open throws.
ModelFiles read_single_file(const std::filesystem::path& path);

// A VAE in a file of its own, with or without "first_stage_model." or "vae." before its names.
ModelPart read_vae_file(const std::filesystem::path& path, ImageFamily family);

}  // namespace rbee::models
