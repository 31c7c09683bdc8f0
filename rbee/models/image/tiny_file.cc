#include "rbee/models/image/tiny_file.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/io/hf_folder.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::TensorEntry;
using nlohmann::json;

constexpr const char* kEncoder = "encoder.layers.";
constexpr const char* kDecoder = "decoder.layers.";

// Splits names of `prefix`, a layer's number, and the rest. The authors count the bounding of
// latents as their decoder's first layer, diffusers does not.
struct Form {
  std::string_view prefix;
  const char* to;
  int64_t shift;
};
constexpr Form kForms[] = {
    {kEncoder, kEncoder, 0},    {kDecoder, kDecoder, 0},         {"encoder.", kEncoder, 0},
    {"decoder.", kDecoder, -1}, {"taesd_encoder.", kEncoder, 0}, {"taesd_decoder.", kDecoder, -1},
};

// Adds the layers of a file that have one form of names.
void add_layers(const io::Checkpoint& file, const Form& form, std::vector<TensorEntry>& out) {
  for (const TensorEntry& entry : file.tensors()) {
    const std::string_view name = entry.name;
    if (!name.starts_with(form.prefix)) continue;
    const std::string_view rest = name.substr(form.prefix.size());
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{} || rest.starts_with('-')) continue;
    out.push_back(entry);
    out.back().name =
        cat(form.to, number + form.shift, rest.substr(static_cast<size_t>(end - rest.data())));
  }
}

// The authors' encoder begins with a convolution, their decoder does not.
void add_half(const io::Checkpoint& file, std::vector<TensorEntry>& out) {
  const bool encoder = file.find("0.weight") != nullptr;
  add_layers(file, encoder ? Form{"", kEncoder, 0} : Form{"", kDecoder, -1}, out);
}

fs::path other_half(const fs::path& path) {
  std::string name = path.filename().string();
  for (const auto& [own, other] :
       {std::pair{"decoder", "encoder"}, std::pair{"encoder", "decoder"}}) {
    const size_t at = name.rfind(own);
    if (at == std::string::npos) continue;
    return path.parent_path() / name.replace(at, std::string_view(own).size(), other);
  }
  return {};
}

std::vector<TensorEntry> read_layers(const fs::path& path) {
  std::vector<TensorEntry> out;
  const io::Checkpoint file = io::Checkpoint::open(path);
  for (const Form& form : kForms) add_layers(file, form, out);
  if (!out.empty()) return out;
  add_half(file, out);
  const fs::path other = other_half(path);
  if (!out.empty() && fs::is_regular_file(other)) add_half(io::Checkpoint::open(other), out);
  return out;
}

// Residual blocks by level: levels end with a convolution.
std::vector<int64_t> count_blocks(const io::Checkpoint& layers, const std::string& half) {
  constexpr int64_t kMost = 1024;
  std::vector<int64_t> out;
  int64_t blocks = 0;
  for (int64_t i = 1; i < kMost; ++i) {
    if (layers.find(cat(half, i, ".conv.0.weight")) != nullptr) {
      ++blocks;
    } else if (layers.find(cat(half, i, ".weight")) != nullptr) {
      out.push_back(std::exchange(blocks, 0));
    }
  }
  return out;
}

json config_of(const io::Checkpoint& layers, const std::string& source) {
  const TensorEntry* first = layers.find(cat(kDecoder, "0.weight"));
  if (first == nullptr || first->shape.rank() != 4) {
    fail(Code::not_found, source, "the file has no decoder of a tiny autoencoder");
  }
  const std::vector<int64_t> decoder = count_blocks(layers, kDecoder);
  std::vector<int64_t> encoder = count_blocks(layers, kEncoder);
  if (encoder.empty()) encoder = decoder;
  const std::vector<int64_t> widths(decoder.size(), first->shape[0]);
  return {{"_class_name", "AutoencoderTiny"},     {"latent_channels", first->shape[1]},
          {"num_encoder_blocks", encoder},        {"num_decoder_blocks", decoder},
          {"encoder_block_out_channels", widths}, {"decoder_block_out_channels", widths}};
}

// For a file in a folder of diffusers.
std::optional<io::JsonConfig> config_beside(const fs::path& path) {
  constexpr uintmax_t kMaxBytes = uintmax_t{1} << 20;
  const fs::path file = path.parent_path() / "config.json";
  const auto text = io::read_text(file, kMaxBytes);
  if (!text) return std::nullopt;
  io::JsonConfig config(*text, file.string());
  if (config.text_or("_class_name", "") != "AutoencoderTiny") return std::nullopt;
  return config;
}

}  // namespace

std::optional<ModelPart> find_tiny_file(const fs::path& path) {
  std::vector<TensorEntry> tensors = read_layers(path);
  if (tensors.empty()) return std::nullopt;
  const std::string source = path.string();
  io::Checkpoint layers = io::Checkpoint::of(std::move(tensors), source);
  io::JsonConfig inferred(config_of(layers, source).dump(), source);
  return ModelPart{path.stem().string(),
                   "AutoencoderTiny",
                   config_beside(path).value_or(std::move(inferred)),
                   std::move(layers),
                   {}};
}

}  // namespace rbee::models
