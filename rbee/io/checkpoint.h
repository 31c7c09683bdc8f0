#pragma once
// A model's weights and settings, from a GGUF file or in Hugging Face's layout. Opening reads the
// headers only; tensors are views of the mapped files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rbee/io/metadata.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {

struct WeightFile;

class Checkpoint {
 public:
  enum class Format : uint8_t { gguf, safetensors };

  // Not copyable: the index refers to the names in its own tensors. Moving leaves those in place.
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  // Opens one of
  //  - a .gguf file; if it is split, the first part (the names of the others follow from its name);
  //  - a .safetensors file with its config.json beside it;
  //  - a folder with config.json and the files that model.safetensors.index.json lists; without an
  //    index, every *.safetensors in it.
  // Throws not_found and io for files that are missing or unreadable, invalid_argument naming the
  // file, field and values for malformed ones, and unsupported for versions and types that are not
  // implemented.
  static Checkpoint open(const std::filesystem::path& path);

  // The tensors of these safetensors files. text_file() looks in `folder`.
  static Checkpoint open(const std::vector<WeightFile>& files, const std::filesystem::path& folder);
  // Tensors from elsewhere, perhaps under other names or in other shapes than their file says.
  // `source` names them in errors. Throws invalid_argument if a name occurs twice.
  static Checkpoint of(std::vector<TensorEntry> tensors, std::string_view source,
                       std::string config_json = {});

  Format format() const { return format_; }
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const TensorEntry* find(std::string_view name) const;
  // Throws not_found naming the tensor.
  const TensorEntry& require(std::string_view name) const;

  // Empty for safetensors.
  const Metadata& metadata() const { return metadata_; }
  // The text of config.json, and in it the quantisation settings that old folders keep in a file of
  // their own. Empty for GGUF and if the file is missing.
  const std::string& config_json() const { return config_json_; }
  // The text of a file beside the weights, e.g. "tokenizer.json", or in a folder there, e.g.
  // "1_Pooling/config.json"; nothing if there is none. Throws invalid_argument if `name` leads out
  // of the folder or the file is larger than 256 MiB.
  std::optional<std::string> text_file(std::string_view name) const;

  // GGUF: general.architecture. Safetensors: config.json's model_type in lower case. Without one,
  // the first entry of its architectures: the first of llama, mistral, phi, qwen and gemma that the
  // entry contains, or else the entry itself. Throws not_found if the file says neither.
  std::string architecture() const;
  // Bytes of the files that hold tensors.
  int64_t file_bytes() const { return file_bytes_; }

 private:
  Checkpoint() = default;
  void open_gguf(const std::filesystem::path& path);
  void open_safetensors(const std::vector<WeightFile>& files);
  void read_config();
  void add_tensors(std::vector<TensorEntry> tensors, const MappedFile& file);
  void build_index();

  Format format_ = Format::gguf;
  std::filesystem::path path_;    // as given
  std::filesystem::path folder_;  // where the files lie
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string_view, size_t> index_;  // keys are the names in tensors_
  Metadata metadata_;
  std::string config_json_;
  int64_t file_bytes_ = 0;
};

}  // namespace rbee::io
