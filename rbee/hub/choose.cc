#include "rbee/hub/choose.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "rbee/core/error.h"
#include "rbee/core/printable.h"
#include "rbee/hub/gguf_names.h"
#include "rbee/hub/progress.h"

namespace rbee::hub {
namespace {

using Files = std::vector<RepoFile>;

constexpr std::string_view kModelIndex = "model_index.json";
// Folders of diffusers' pipelines that hold no weights of the picture.
constexpr std::string_view kUnused[] = {"safety_checker", "feature_extractor", "image_encoder"};

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_weights(std::string_view path) {
  return path.ends_with(".safetensors");
}

// Configuration, tokenizers and templates: small, and in other formats than weights.
bool is_text(const RepoFile& file) {
  const std::string_view name = name_of(file.path);
  // Of weights, which come with their index.
  const bool index = name.ends_with(".json") && name.find(".index.") != std::string_view::npos;
  if (index) return false;
  for (const std::string_view end : {".json", ".txt", ".model", ".jinja", ".tiktoken"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

bool has(std::span<const RepoFile> files, std::string_view path) {
  return std::ranges::find(files, path, &RepoFile::path) != files.end();
}

Files in_folder(std::span<const RepoFile> files, std::string_view folder) {
  Files out;
  for (const RepoFile& file : files) {
    if (folder_of(file.path) == folder) out.push_back(file);
  }
  return out;
}

// ".fp16", or another word between two dots of a weight file's name; empty for plain names.
std::string variant_of(std::string_view path) {
  std::string_view name = name_of(path);
  name.remove_suffix(std::string_view(".safetensors").size());
  if (const size_t dash = split_begin(name); dash != std::string_view::npos) {
    name = name.substr(0, dash);
  }
  const size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos ? std::string_view() : name.substr(dot));
}

// The weights of one folder: of the first variant of `variants` that is there, in parts only where
// an index lists them.
Files weights_of(const Files& files, std::span<const std::string_view> variants) {
  for (const std::string_view variant : variants) {
    Files whole, split, index;
    for (const RepoFile& file : files) {
      const std::string_view name = name_of(file.path);
      if (name.ends_with(cat(".safetensors.index", variant, ".json"))) index.push_back(file);
      if (!is_weights(name) || variant_of(name) != variant) continue;
      if (name.starts_with("consolidated")) continue;  // the same weights in another layout
      const std::string stem(name.substr(0, name.size() - std::string_view(".safetensors").size()));
      (split_begin(stem) == std::string_view::npos ? whole : split).push_back(file);
    }
    if (!index.empty() && !split.empty()) {
      std::ranges::move(index, std::back_inserter(split));
      return split;
    }
    if (!whole.empty()) return whole;
    if (!split.empty()) return split;
  }
  return {};
}

[[noreturn]] void fail_without_weights(std::span<const RepoFile> files, std::string_view where) {
  const bool pickled = std::ranges::any_of(files, [](const RepoFile& file) {
    return file.path.ends_with(".bin") || file.path.ends_with(".pth") ||
           file.path.ends_with(".ckpt") || file.path.ends_with(".pt");
  });
  fail(Code::not_found, "hub", where, " has neither .gguf nor .safetensors files",
       pickled ? ", only weights that Python pickled, which can hold programs and are not read"
               : "");
}

Choice choose_diffusers(std::span<const RepoFile> files) {
  constexpr std::string_view kVariants[] = {".fp16", "", ".bf16"};
  Choice out{.why = "a folder of diffusers, of each part one variant"};
  std::map<std::string_view, Files> folders;
  for (const RepoFile& file : files) {
    if (folder_of(file.path).empty() && is_text(file)) out.files.push_back(file);
    const std::string_view folder = folder_of(file.path);
    const bool part = !folder.empty() && folder.find('/') == std::string_view::npos;
    if (part && std::ranges::find(kUnused, folder) == std::end(kUnused)) {
      folders[folder].push_back(file);
    }
  }
  for (const auto& [folder, all] : folders) {
    // Folders beside the parts, of pictures or other programs' weights, have no configuration.
    const bool part = std::ranges::any_of(
        all, [](const RepoFile& file) { return name_of(file.path).ends_with(".json"); });
    if (!part) continue;
    Files weights = weights_of(all, kVariants);
    std::ranges::move(weights, std::back_inserter(out.files));
    std::ranges::copy_if(all, std::back_inserter(out.files), is_text);
  }
  if (std::ranges::none_of(out.files, [](const RepoFile& f) { return is_weights(f.path); })) {
    fail_without_weights(files, "the folder of diffusers");
  }
  return out;
}

// Of sentence-transformers: "1_Pooling", "2_Dense".
bool is_module_folder(std::string_view folder) {
  const size_t digits = folder.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && folder[digits] == '_' &&
         folder.find('/') == std::string_view::npos;
}

Choice choose_folder(std::span<const RepoFile> files) {
  constexpr std::string_view kVariants[] = {"", ".fp16", ".bf16"};
  const Files root = in_folder(files, "");
  Choice out{.files = weights_of(root, kVariants), .why = "the .safetensors files of its root"};
  if (out.files.empty()) fail_without_weights(files, "the repository");
  std::ranges::copy_if(root, std::back_inserter(out.files), is_text);
  const bool described = has(files, "config.json") || has(files, "adapter_config.json");
  if (!described && out.files.size() == 1) out.model = out.files.front().path;
  for (const RepoFile& file : files) {
    if (!is_module_folder(folder_of(file.path))) continue;
    if (is_weights(file.path) || is_text(file)) out.files.push_back(file);
  }
  return out;
}

Choice choose_named(std::span<const RepoFile> files, const std::string& path) {
  const auto found = std::ranges::find(files, path, &RepoFile::path);
  if (found == files.end()) {
    fail(Code::not_found, "hub", "the repository has no file '", printable_line(path), "'");
  }
  Choice out{.model = path, .why = "the file that was named"};
  for (const RepoFile& file : files) {
    if (file.path == path || is_other_part(path, file.path)) out.files.push_back(file);
  }
  check_parts(out.files);
  if (is_weights(path)) {
    const Files beside = in_folder(files, folder_of(path));
    std::ranges::copy_if(beside, std::back_inserter(out.files), is_text);
  } else if (path.ends_with(".gguf") && !is_mmproj(path)) {
    add_mmproj(files, out);
  }
  return out;
}

}  // namespace

int64_t Choice::bytes() const {
  int64_t out = 0;
  for (const RepoFile& file : files) out += file.size;
  return out;
}

int64_t needed_memory(int64_t weight_bytes) {
  constexpr int64_t kContextBytes = int64_t{512} << 20;
  return weight_bytes + weight_bytes / 16 + kContextBytes;
}

Choice choose_files(std::span<const RepoFile> files, const WantedFiles& wanted) {
  if (!wanted.file.empty()) return choose_named(files, wanted.file);
  const bool gguf =
      std::ranges::any_of(files, [](const RepoFile& file) { return is_gguf_model(file.path); });
  const bool folder = has(files, kModelIndex) || std::ranges::any_of(files, [](const RepoFile& f) {
                        return is_weights(f.path) && folder_of(f.path).empty();
                      });
  if (gguf && (!folder || !wanted.quantization.empty())) return choose_gguf(files, wanted);
  if (!wanted.quantization.empty()) {
    fail(Code::not_found, "hub", "the repository has no GGUF files, so no quantization ",
         wanted.quantization);
  }
  return has(files, kModelIndex) ? choose_diffusers(files) : choose_folder(files);
}

}  // namespace rbee::hub
