#pragma once
// An image model's files before loading: its parts, with their settings and weights under the names
// of a diffusers folder, whatever the files' layout is.

#include <string>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/json_config.h"
#include "rbee/models/image/image_model.h"

namespace rbee::models {

struct ModelPart {
  std::string name;        // the sub-folder of diffusers, e.g. "text_encoder_2"
  std::string class_name;  // e.g. "CLIPTextModelWithProjection"
  io::JsonConfig config;
  io::Checkpoint weights;
  TokenizerFiles tokenizer;  // of text encoders
};

struct ModelFiles {
  ImageFamily family = ImageFamily::sd1;
  std::string name;
  std::vector<ModelPart> parts;
  SchedulerSettings scheduler;
  bool zeros_for_empty_negative = false;

  const ModelPart* find(std::string_view part) const;
  // Throws not_found naming the part.
  const ModelPart& require(std::string_view part) const;
};

// Throws not_found, invalid_argument and unsupported naming file and field.
ModelFiles read_diffusers_folder(const std::filesystem::path& path);

// One part: a folder with config.json and weights. `class_name` is for configs without one.
ModelPart read_part_folder(const std::filesystem::path& path, const std::string& class_name);

// The tokenizer files that the folder has.
TokenizerFiles read_tokenizer_folder(const std::filesystem::path& path);

// As load_image_model(path, ...), but does not read the options' paths of other parts.
ImageModel load_image_model(ModelFiles&& files, const ImageLoadOptions& options);

}  // namespace rbee::models
