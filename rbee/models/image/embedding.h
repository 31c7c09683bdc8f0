#pragma once
// Files of textual inversion (Gal et al. 2022): words of their own, whose vectors take the place of
// tokens in a text encoder.

#include <filesystem>
#include <string>
#include <vector>

#include "rbee/models/image/image_model.h"

namespace rbee::models {

struct TextEmbedding {
  std::string word;   // what prompts call it by
  int64_t count = 0;  // vectors, one for each token that the word becomes
  // (count, width) of each of the model's text encoders, in their order; empty: nothing for that
  // encoder, which reads the word as text.
  std::vector<std::vector<float>> vectors;
};

// A .safetensors file in AUTOMATIC1111's form ("emb_params", for SDXL "clip_l" and "clip_g"; the
// word is the file's name) or in that of diffusers (the word is the only tensor's name, or the
// file's where that is open: "*"). Throws
// unsupported with a remedy for pickled files and vectors of another model's width,
// invalid_argument for tensors that are no vectors, and what Checkpoint::open throws.
TextEmbedding read_embedding(const std::filesystem::path& path, const ImageModel& model);

}  // namespace rbee::models
