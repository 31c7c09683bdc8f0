#include "rbee/io/hf_folder.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/io/json_parse.h"

namespace rbee::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr uintmax_t kMaxIndexBytes = uintmax_t{64} << 20;

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// A listed file must lie in the folder itself.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::vector<WeightFile> read_index(const fs::path& folder, const std::string& name,
                                   const std::string& text) {
  const std::string source = (folder / name).string();
  const json index = parse_json(text, source);
  const json* map = nullptr;
  if (index.is_object() && index.contains("weight_map")) map = &index["weight_map"];
  check(map != nullptr && map->is_object(), source, "it has no object weight_map");
  std::map<std::string, WeightFile> files;
  for (const auto& [tensor, file] : map->items()) {
    check(file.is_string() && is_plain_name(file.get_ref<const std::string&>()), source,
          "weight_map places ", tensor, " in ",
          file.dump(-1, ' ', true, json::error_handler_t::replace), ", which is no file name");
    const auto& listed = file.get_ref<const std::string&>();
    WeightFile& entry = files[listed];
    entry.path = folder / listed;
    entry.wanted.push_back(tensor);
  }
  std::vector<WeightFile> out;
  for (auto& [listed, file] : files) {
    if (!fs::exists(file.path)) {
      fail(Code::not_found, source, "it lists ", listed, ", which is not in the folder");
    }
    out.push_back(std::move(file));
  }
  return out;
}

[[noreturn]] void fail_empty(const fs::path& folder, const fs::path& gguf) {
  if (!gguf.empty()) {
    fail(Code::not_found, folder.string(), "no .safetensors file in the folder; give the path of ",
         gguf.filename().string(), " itself to read that");
  }
  fail(Code::not_found, folder.string(), "no .safetensors file in the folder");
}

}  // namespace

std::vector<WeightFile> find_weight_files(const fs::path& folder) {
  if (const auto text = read_text(folder / kIndexName, kMaxIndexBytes)) {
    std::vector<WeightFile> listed = read_index(folder, kIndexName, *text);
    if (listed.empty()) fail_empty(folder, {});
    return listed;
  }
  std::vector<WeightFile> files;
  fs::path gguf;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") files.push_back({entry.path(), {}});
    if (entry.path().extension() == ".gguf") gguf = entry.path();
  }
  if (error) fail(Code::io, folder.string(), "the folder cannot be read: ", error.message());
  if (files.empty()) fail_empty(folder, gguf);
  std::ranges::sort(files, {}, &WeightFile::path);
  return files;
}

std::vector<WeightFile> read_weight_index(const fs::path& folder, const std::string& index_name) {
  const auto text = read_text(folder / index_name, kMaxIndexBytes);
  if (!text) fail(Code::not_found, (folder / index_name).string(), "there is no such file");
  std::vector<WeightFile> listed = read_index(folder, index_name, *text);
  if (listed.empty()) fail_empty(folder, {});
  return listed;
}

std::optional<std::string> read_text(const fs::path& path, uintmax_t limit) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  return read_file(path, limit);
}

std::string architecture_of_config(std::string_view text, const std::string& source) {
  const json config = parse_json(text, source);
  check(config.is_object(), source, "it does not hold an object");
  const auto type = config.find("model_type");
  if (type != config.end() && type->is_string()) return lower_case(type->get<std::string>());
  const auto list = config.find("architectures");
  const bool named =
      list != config.end() && list->is_array() && !list->empty() && list->front().is_string();
  if (!named) fail(Code::not_found, source, "neither model_type nor architectures names the model");
  const auto first = list->front().get<std::string>();
  const std::string lower = lower_case(first);
  for (const char* family : {"llama", "mistral", "phi", "qwen", "gemma"}) {
    if (lower.find(family) != std::string::npos) return family;
  }
  return first;
}

}  // namespace rbee::io
