#pragma once
// Textual inversion files (Gal et al. 2022): they define a word whose vectors replace token
// embeddings in a text encoder.

#include <filesystem>
#include <string>
#include <vector>

#include "rbee/models/image/image_model.h"

namespace rbee::models {

struct TextEmbedding {
  std::string word;   // its name in prompts
  int64_t count = 0;  // vectors, one for each token that the word becomes
  // (count, width) for each of the model's text encoders, in their order. An encoder with an empty
  // one reads the word as text.
  std::vector<std::vector<float>> vectors;
};

// A .safetensors file in AUTOMATIC1111's form ("emb_params", for SDXL "clip_l" and "clip_g"; the
// word is the file's name) or in diffusers' (the word is the only tensor's name, or the file's name
// if that is "*"). Throws unsupported with a remedy for pickled files and vectors of another
// model's width, invalid_argument for tensors that are not vectors, and what Checkpoint::open
// throws.
TextEmbedding read_embedding(const std::filesystem::path& path, const ImageModel& model);

}  // namespace rbee::models
