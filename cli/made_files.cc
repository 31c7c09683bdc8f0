#include "cli/made_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/engine/api/text.h"
#include "rbee/hub/gguf_names.h"
#include "rbee/io/gguf_reader.h"
#include "rbee/io/mapped_file.h"
#include "server/apis/ollama/models.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using Files = server::OllamaRecord::Files;

constexpr std::string_view kGguf = ".gguf";
constexpr std::string_view kSafetensors = ".safetensors";

bool is_gguf_file(const fs::path& path) {
  constexpr std::string_view kMagic = "GGUF";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const InputFile file(path);
  std::array<char, kMagic.size()> begin{};
  const ssize_t count = read(file.descriptor(), begin.data(), begin.size());
  return count == std::ssize(begin) && std::string_view(begin.data(), begin.size()) == kMagic;
}

// A projector of pictures, beside the model that it is for.
bool is_projector(const fs::path& path) {
  if (hub::is_mmproj(path.filename().string())) return true;
  const io::GgufContents contents = io::read_gguf(io::MappedFile::open(path));
  return contents.metadata.get_string("general.architecture") == "clip";
}

// Those whose names end so, in order.
std::vector<std::string> names_with(const Files& files, std::string_view ending) {
  std::vector<std::string> out;
  for (const auto& [name, digest] : files) {
    if (name.ends_with(ending)) out.push_back(name);
  }
  return out;
}

}  // namespace

std::string folder_name(const Files& files) {
  std::string text;
  for (const auto& [name, digest] : files) text += cat(digest, " ", name, "\n");
  return server::ollama_digest(text);
}

void link_files(const BlobStore& blobs, const Files& files, const std::string& field,
                const fs::path& folder) {
  std::error_code error;
  for (const auto& [name, digest] : files) {
    check(blobs.touch(digest), field, "no file with the digest sha256:", digest,
          " is here: upload it to /api/blobs");
    const fs::path link = folder / name;
    fs::create_directories(link.parent_path(), error);
    if (!error) {
      const fs::path blob = blobs.path_of(digest);
      fs::create_symlink(blob.lexically_relative(link.parent_path()), link, error);
    }
    if (error) fail(Code::io, field, "a link cannot be made: ", error.message());
  }
}

Files with_endings(const BlobStore& blobs, const Files& files) {
  Files out;
  for (const auto& [name, digest] : files) {
    const bool lacks = !name.ends_with(kGguf) && is_gguf_file(blobs.path_of(digest));
    out[lacks ? cat(name, kGguf) : name] = digest;
  }
  return out;
}

MadeModelFiles model_in(const fs::path& folder, const Files& files) {
  MadeModelFiles out{.model = folder};
  std::string first;
  for (const std::string& name : names_with(files, kGguf)) {
    if (is_projector(folder / name)) {
      check(out.mmproj.empty(), "files", "there are two projectors, ", name, " is one");
      out.mmproj = folder / name;
    } else {
      const bool part = first.empty() || hub::is_other_part(name, first);
      check(part, "files", "there are two models, ", first, " and ", name);
      if (first.empty()) first = name;
    }
  }
  if (!first.empty()) {
    out.model = folder / first;
    return out;
  }
  check(!names_with(files, kSafetensors).empty(), "files",
        "there is no model: neither a GGUF file ", "nor one that ends in .safetensors");
  check(files.contains("config.json"), "files", "a folder of .safetensors needs config.json");
  return out;
}

std::vector<fs::path> adapters_in(const fs::path& folder, const Files& adapters) {
  std::vector<fs::path> out;
  for (const std::string& name : names_with(adapters, kGguf)) out.push_back(folder / name);
  check(out.size() <= engine::kMaxLoras, "adapters", "there are ", out.size(), ", at most ",
        engine::kMaxLoras, " are used at once");
  if (!out.empty()) return out;
  const bool peft = adapters.contains("adapter_config.json");
  check(
      peft && !names_with(adapters, kSafetensors).empty(), "adapters",
      "there is no adapter: neither a GGUF file nor adapter_config.json with a file that ends in ",
      kSafetensors);
  return {folder};
}

}  // namespace rbee::tools
