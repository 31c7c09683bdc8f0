#include "rbee/io/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/io/float4_folder.h"
#include "rbee/io/fp8_folder.h"
#include "rbee/io/gguf_reader.h"
#include "rbee/io/hf_folder.h"
#include "rbee/io/integer_folder.h"
#include "rbee/io/json_config.h"
#include "rbee/io/old_quantization.h"
#include "rbee/io/original_shapes.h"
#include "rbee/io/safetensors_reader.h"

namespace rbee::io {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxTextBytes = uintmax_t{256} << 20;
constexpr uint64_t kMaxParts = 1024;

// "-00002-of-00005.gguf" for part 1 (counted from 0) of 5.
std::string part_suffix(uint64_t part, uint64_t count) {
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "-%05u-of-%05u.gguf", static_cast<unsigned>(part + 1),
                static_cast<unsigned>(count));
  return text.data();
}

// The files of a split model, beginning with `path`; only that if the model is whole.
std::vector<fs::path> split_parts(const fs::path& path, const Metadata& metadata) {
  const uint64_t count = metadata.get_u64("split.count").value_or(1);
  if (count <= 1) return {path};
  const std::string source = path.string();
  check(count <= kMaxParts, source, "split.count is ", count, ", wanted at most ", kMaxParts);
  const uint64_t part = metadata.get_u64("split.no").value_or(0);
  check(part == 0, source, "this is part ", part + 1, " of ", count,
        "; open the first, whose name ", "ends in ", part_suffix(0, count));
  const std::string suffix = part_suffix(0, count);
  check(source.ends_with(suffix), source, "it is the first of ", count,
        " parts; their names have to end as ", suffix);
  const std::string stem = source.substr(0, source.size() - suffix.size());
  std::vector<fs::path> parts;
  parts.reserve(count);
  for (uint64_t i = 0; i < count; ++i) parts.emplace_back(stem + part_suffix(i, count));
  return parts;
}

void check_part(const Metadata& metadata, const std::string& source, uint64_t part,
                uint64_t count) {
  const uint64_t found_part = metadata.get_u64("split.no").value_or(0);
  const uint64_t found_count = metadata.get_u64("split.count").value_or(1);
  check(found_part == part && found_count == count, source, "it says to be part ", found_part + 1,
        " of ", found_count, ", wanted part ", part + 1, " of ", count);
}

void check_wanted(const WeightFile& file, const std::vector<TensorEntry>& tensors) {
  if (file.wanted.empty()) return;
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  for (const std::string& name : file.wanted) {
    if (std::ranges::binary_search(names, name)) continue;
    fail(Code::not_found, file.path.string(), "the index places the tensor ", name,
         " here, but the file does not have it");
  }
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(Code::not_found, path.string(), "there is no such file or folder");
  if (fs::is_directory(status)) {
    checkpoint.folder_ = path;
    checkpoint.open_safetensors(find_weight_files(path));
  } else {
    checkpoint.folder_ = path.parent_path();
    if (path.extension() == ".gguf") {
      checkpoint.open_gguf(path);
    } else if (path.extension() == ".safetensors") {
      checkpoint.open_safetensors({WeightFile{path, {}}});
    } else {
      fail(Code::invalid_argument, path.string(), "neither a folder nor a file that ends in .gguf ",
           "or .safetensors");
    }
  }
  checkpoint.build_index();
  return checkpoint;
}

Checkpoint Checkpoint::open(const std::vector<WeightFile>& files, const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.path_ = checkpoint.folder_ = folder;
  checkpoint.open_safetensors(files);
  checkpoint.build_index();
  return checkpoint;
}

Checkpoint Checkpoint::of(std::vector<TensorEntry> tensors, std::string_view source,
                          std::string config_json) {
  Checkpoint checkpoint;
  checkpoint.config_json_ = std::move(config_json);
  checkpoint.format_ = Format::safetensors;
  checkpoint.path_ = source;
  for (const TensorEntry& tensor : tensors) {
    checkpoint.file_bytes_ += static_cast<int64_t>(tensor.data.size());
  }
  checkpoint.tensors_ = std::move(tensors);
  checkpoint.build_index();
  return checkpoint;
}

void Checkpoint::open_gguf(const fs::path& path) {
  format_ = Format::gguf;
  const auto first = MappedFile::open(path);
  GgufContents contents = read_gguf(first);
  metadata_ = std::move(contents.metadata);
  add_tensors(std::move(contents.tensors), *first);
  const std::vector<fs::path> parts = split_parts(path, metadata_);
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto file = MappedFile::open(parts[i]);
    GgufContents more = read_gguf(file);
    check_part(more.metadata, parts[i].string(), i, parts.size());
    add_tensors(std::move(more.tensors), *file);
  }
  const uint64_t total = metadata_.get_u64("split.tensors.count").value_or(tensors_.size());
  restore_shapes(metadata_, tensors_, path.string());
  check(parts.size() == 1 || total == tensors_.size(), path.string(), "split.tensors.count is ",
        total, ", the parts have ", tensors_.size(), " tensors");
}

void Checkpoint::open_safetensors(const std::vector<WeightFile>& files) {
  format_ = Format::safetensors;
  for (const WeightFile& each : files) {
    const auto file = MappedFile::open(each.path);
    std::vector<TensorEntry> tensors = read_safetensors(file);
    check_wanted(each, tensors);
    add_tensors(std::move(tensors), *file);
  }
  read_config();
  const std::string source = (folder_ / "config.json").string();
  tensors_ = with_fp8_scales(std::move(tensors_), config_json_, source);
  tensors_ = with_float4_weights(std::move(tensors_), config_json_, source);
  tensors_ = with_integer_weights(std::move(tensors_), config_json_, source);
}

void Checkpoint::read_config() {
  config_json_ = text_file("config.json").value_or("");
  if (config_json_.empty()) return;
  const std::string source = (folder_ / "config.json").string();
  for (const std::string_view name : {kOldGptqFile, kOldAwqFile}) {
    const std::optional<std::string> old = text_file(name);
    if (!old) continue;
    config_json_ = with_old_quantization(config_json_, *old, name, source);
  }
  const JsonConfig config(config_json_, source);
  if (config.is_off("quantization_config")) return;
  const JsonConfig quantization = config.section("quantization_config");
  if (quantization.is_off("kv_cache_scheme")) return;
  log(LogLevel::info, "the checkpoint's scales of keys and values are not read",
      {{"field", quantization.describe("kv_cache_scheme")}});
}

void Checkpoint::add_tensors(std::vector<TensorEntry> tensors, const MappedFile& file) {
  file_bytes_ += static_cast<int64_t>(file.bytes().size());
  std::ranges::move(tensors, std::back_inserter(tensors_));
}

void Checkpoint::build_index() {
  index_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto [at, added] = index_.emplace(tensors_[i].name, i);
    check(added, tensors_[i].source(), "the tensor ", tensors_[i].name,
          " comes twice; the first is in ", tensors_[at->second].source());
  }
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const TensorEntry& Checkpoint::require(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) {
    fail(Code::not_found, path_.string(), "the tensor ", name, " is missing");
  }
  return *entry;
}

std::optional<std::string> Checkpoint::text_file(std::string_view name) const {
  std::string_view rest = name;
  for (bool more = true; more;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    check(!part.empty() && part != "." && part != "..", path_.string(), "\"", name,
          "\" is not a file beside the weights");
    more = slash != std::string_view::npos;
    if (more) rest.remove_prefix(slash + 1);
  }
  return read_text(folder_ / name, kMaxTextBytes);
}

std::string Checkpoint::architecture() const {
  if (format_ == Format::gguf) return std::string(metadata_.require_string("general.architecture"));
  const std::string source = (folder_ / "config.json").string();
  if (config_json_.empty()) fail(Code::not_found, source, "missing or empty");
  return architecture_of_config(config_json_, source);
}

}  // namespace rbee::io
