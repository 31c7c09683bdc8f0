#pragma once
// A folder in the layout of Hugging Face's diffusers: model_index.json names the parts of a
// pipeline and their classes; each part is a sub-folder with its settings and weights.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/json_config.h"

namespace rbee::io {

struct PipelinePart {
  std::string name;        // the sub-folder, e.g. "text_encoder_2"
  std::string library;     // "diffusers" or "transformers"
  std::string class_name;  // e.g. "UNet2DConditionModel"
};

class DiffusersFolder {
 public:
  static bool is_one(const std::filesystem::path& path);  // a folder that has a model_index.json

  // Throws not_found and io for missing or unreadable files, and invalid_argument naming file and
  // field for malformed ones.
  static DiffusersFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // model_index.json itself.
  const JsonConfig& index() const { return index_; }
  std::string pipeline() const;  // its _class_name, e.g. "StableDiffusionXLPipeline"
  const std::vector<PipelinePart>& parts() const { return parts_; }
  // The part of this name; nullptr if model_index.json lacks it or has null for it.
  const PipelinePart* find(std::string_view name) const;
  // Throws not_found, naming the parts that the folder has.
  const PipelinePart& require(std::string_view name) const;

  // The part's config.json, or another file of the part.
  JsonConfig config(std::string_view part, std::string_view file = "config.json") const;
  // The text of a file of the part; nothing if there is no such file.
  std::optional<std::string> text_file(std::string_view part, std::string_view file) const;
  Checkpoint weights(std::string_view part) const;

 private:
  DiffusersFolder(std::filesystem::path path, JsonConfig index);

  std::filesystem::path path_;
  JsonConfig index_;
  std::vector<PipelinePart> parts_;
};

// The weights in a part's folder: diffusion_pytorch_model or model, as one file or by an index, in
// full precision or else as the fp16 or bf16 variant. Throws not_found if there are none, and
// unsupported, with a remedy, if there are only pickled ones (.bin, .ckpt).
Checkpoint open_part_weights(const std::filesystem::path& folder);

// Throws unsupported, with a remedy, if the name is that of a pickled checkpoint: .ckpt, .pt, .pth
// or .bin. Unpickling runs code from the file.
void refuse_pickle(const std::filesystem::path& file);

}  // namespace rbee::io
