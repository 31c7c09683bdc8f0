#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::io {

// A weights file of a Hugging Face folder and the tensors that its index places in it (none without
// an index).
struct WeightFile {
  std::filesystem::path path;
  std::vector<std::string> wanted;
};

// The files that model.safetensors.index.json lists, else every *.safetensors, by name. Throws
// not_found if there is none or a listed one is missing, and invalid_argument for a bad index.
std::vector<WeightFile> find_weight_files(const std::filesystem::path& folder);

// The files that the index of that name lists. Throws as above, and not_found if there is no index.
std::vector<WeightFile> read_weight_index(const std::filesystem::path& folder,
                                          const std::string& index_name);

// Reads a whole file as text; nothing if there is no such file. Throws as read_file() does.
std::optional<std::string> read_text(const std::filesystem::path& path, uintmax_t limit);

// The architecture that a config.json names, by the rule of Checkpoint::architecture().
std::string architecture_of_config(std::string_view text, const std::string& source);

}  // namespace rbee::io
