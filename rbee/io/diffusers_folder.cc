#include "rbee/io/diffusers_folder.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "rbee/core/error.h"
#include "rbee/io/hf_folder.h"

namespace rbee::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model_index.json";
constexpr uintmax_t kMaxConfigBytes = uintmax_t{16} << 20;
constexpr uintmax_t kMaxTextBytes = uintmax_t{256} << 20;

bool is_pickle(const fs::path& file) {
  constexpr std::array<std::string_view, 4> kEndings = {".ckpt", ".pt", ".pth", ".bin"};
  return std::ranges::find(kEndings, file.extension().string()) != kEndings.end();
}

bool is_part_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

JsonConfig read_config(const fs::path& file) {
  const auto text = read_text(file, kMaxConfigBytes);
  if (!text) fail(Code::not_found, file.string(), "there is no such file");
  return {*text, file.string()};
}

// The names of a part's weights, best first.
std::vector<WeightFile> find_part_files(const fs::path& folder) {
  for (const std::string_view variant : {"", ".fp16", ".bf16"}) {
    for (const std::string_view stem : {"diffusion_pytorch_model", "model"}) {
      const fs::path whole = folder / cat(stem, variant, ".safetensors");
      if (fs::exists(whole)) return {WeightFile{whole, {}}};
      const std::string index = cat(stem, ".safetensors.index", variant, ".json");
      if (fs::exists(folder / index)) return read_weight_index(folder, index);
    }
  }
  return {};
}

[[noreturn]] void fail_no_weights(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) refuse_pickle(entry.path());
  if (error) fail(Code::io, folder.string(), "the folder cannot be read: ", error.message());
  fail(Code::not_found, folder.string(),
       "no weights in the folder; looked for diffusion_pytorch_model.safetensors, "
       "model.safetensors, their indexes and their fp16 and bf16 variants");
}

}  // namespace

void refuse_pickle(const fs::path& file) {
  if (!is_pickle(file)) return;
  fail(Code::unsupported, file.string(),
       "is a pickled checkpoint, which can run programs when it is read; take the model's "
       ".safetensors, or convert it with safetensors.torch.save_file in Python");
}

Checkpoint open_part_weights(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    fail(Code::not_found, folder.string(), "there is no such folder");
  }
  const std::vector<WeightFile> files = find_part_files(folder);
  if (files.empty()) fail_no_weights(folder);
  return Checkpoint::open(files, folder);
}

bool DiffusersFolder::is_one(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / kIndexName, error);
}

DiffusersFolder DiffusersFolder::open(const fs::path& path) {
  return {path, read_config(path / kIndexName)};
}

// Fields that begin with '_' are the pipeline's own, lists of two texts are parts, and the rest are
// settings.
DiffusersFolder::DiffusersFolder(fs::path path, JsonConfig index)
    : path_(std::move(path)), index_(std::move(index)) {
  for (const std::string& name : index_.fields()) {
    if (name.starts_with('_') || !index_.is_list(name)) continue;
    const std::vector<std::string> words = index_.texts(name);
    if (words.empty()) continue;
    check(words.size() == 2 && is_part_name(name), index_.describe(name),
          "wanted a library and a class, or two nulls");
    parts_.push_back({name, words[0], words[1]});
  }
  check(!parts_.empty(), index_.source(), "it names no part of a pipeline");
}

std::string DiffusersFolder::pipeline() const {
  return index_.text("_class_name");
}

const PipelinePart* DiffusersFolder::find(std::string_view name) const {
  const auto part = std::ranges::find(parts_, name, &PipelinePart::name);
  return part == parts_.end() ? nullptr : &*part;
}

const PipelinePart& DiffusersFolder::require(std::string_view name) const {
  if (const PipelinePart* part = find(name)) return *part;
  std::string known;
  for (const PipelinePart& part : parts_) known += cat(known.empty() ? "" : ", ", part.name);
  fail(Code::not_found, index_.source(), "the pipeline has no ", name, "; its parts are ", known);
}

JsonConfig DiffusersFolder::config(std::string_view part, std::string_view file) const {
  return read_config(path_ / require(part).name / file);
}

std::optional<std::string> DiffusersFolder::text_file(std::string_view part,
                                                      std::string_view file) const {
  return read_text(path_ / require(part).name / file, kMaxTextBytes);
}

Checkpoint DiffusersFolder::weights(std::string_view part) const {
  return open_part_weights(path_ / require(part).name);
}

}  // namespace rbee::io
