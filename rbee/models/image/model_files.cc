#include "rbee/models/image/model_files.h"

#include <algorithm>
#include <array>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/io/hf_folder.h"
#include "rbee/models/image/scaled_file.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::DiffusersFolder;

constexpr uintmax_t kMaxConfigBytes = uintmax_t{16} << 20;
constexpr uintmax_t kMaxTokenizerBytes = uintmax_t{256} << 20;

ImageFamily unet_family(const DiffusersFolder& folder) {
  if (folder.find("text_encoder_2") != nullptr) {
    return folder.find("text_encoder") != nullptr ? ImageFamily::sdxl : ImageFamily::sdxl_refiner;
  }
  constexpr int64_t kOpenClipWidth = 1024;
  const auto widths = folder.config("unet").integer_each("cross_attention_dim", 1);
  return widths.front() == kOpenClipWidth ? ImageFamily::sd2 : ImageFamily::sd1;
}

ImageFamily family_of(const DiffusersFolder& folder) {
  if (folder.find("unet") != nullptr) return unet_family(folder);
  const std::string denoiser = folder.require("transformer").class_name;
  if (denoiser == "SD3Transformer2DModel") return ImageFamily::sd3;
  if (denoiser == "FluxTransformer2DModel") return ImageFamily::flux;
  if (denoiser == "ZImageTransformer2DModel") return ImageFamily::z_image;
  fail(Code::unsupported, folder.index().describe("transformer"), denoiser,
       " is not implemented; known are UNet2DConditionModel, SD3Transformer2DModel, "
       "FluxTransformer2DModel and ZImageTransformer2DModel");
}

// Finds a tokenizer's file and reads its text.
template <typename Read>
TokenizerFiles tokenizer_files(const Read& read) {
  TokenizerFiles files;
  files.tokenizer_json = read("tokenizer.json");
  files.vocab_json = read("vocab.json");
  files.merges = read("merges.txt");
  files.spiece_model = read("spiece.model");
  files.tokenizer_config_json = read("tokenizer_config.json");
  files.special_tokens_map = read("special_tokens_map.json");
  return files;
}

// "text_encoder_2" has "tokenizer_2".
TokenizerFiles read_tokenizer(const DiffusersFolder& folder, std::string_view encoder) {
  const std::string part =
      cat("tokenizer", encoder.substr(std::string_view("text_encoder").size()));
  if (folder.find(part) == nullptr) return {};
  return tokenizer_files(
      [&](const char* file) { return folder.text_file(part, file).value_or(""); });
}

// The weights of a part's folder, with the scales of its one-byte floats.
io::Checkpoint part_weights(const io::JsonConfig& config, const fs::path& folder) {
  constexpr std::array kRead = {"quanto", "fp8", "modelopt", "compressed-tensors", "gptq", "awq"};
  if (!config.is_off("quantization_config")) {
    const io::JsonConfig settings = config.section("quantization_config");
    const std::string method = settings.text_or("quant_method", "unknown");
    if (std::ranges::count(kRead, method) == 0) {
      fail(Code::unsupported, settings.source(), settings.describe("quant_method"), " is \"",
           method, "\", which is not read; take a folder in 16 bits");
    }
  }
  return with_scales(io::open_part_weights(folder), folder.string());
}

}  // namespace

const ModelPart* ModelFiles::find(std::string_view part) const {
  const auto found = std::ranges::find(parts, part, &ModelPart::name);
  return found == parts.end() ? nullptr : &*found;
}

const ModelPart& ModelFiles::require(std::string_view part) const {
  if (const ModelPart* found = find(part)) return *found;
  fail(Code::not_found, name, "the model has no ", part);
}

ModelFiles read_diffusers_folder(const fs::path& path) {
  const DiffusersFolder folder = DiffusersFolder::open(path);
  ModelFiles files;
  files.family = family_of(folder);
  files.name = fs::absolute(path).lexically_normal().filename().string();
  // diffusers' pipelines of SDXL do so when their index does not say.
  const bool custom =
      files.family == ImageFamily::sdxl || files.family == ImageFamily::sdxl_refiner;
  files.zeros_for_empty_negative = folder.index().flag_or("force_zeros_for_empty_prompt", custom);
  for (const char* name :
       {"text_encoder", "text_encoder_2", "text_encoder_3", "unet", "transformer", "vae"}) {
    const io::PipelinePart* part = folder.find(name);
    if (part == nullptr) continue;
    io::JsonConfig config = folder.config(name);
    // A language model is loaded as for chats, with the forms of quantisation that those have.
    const bool language =
        files.family == ImageFamily::z_image && part->name.starts_with("text_encoder");
    io::Checkpoint weights = language ? io::open_part_weights(path / part->name)
                                      : part_weights(config, path / part->name);
    ModelPart read{part->name, part->class_name, std::move(config), std::move(weights), {}};
    if (part->name.starts_with("text_encoder")) read.tokenizer = read_tokenizer(folder, name);
    files.parts.push_back(std::move(read));
  }
  return files;
}

ModelPart read_part_folder(const fs::path& path, const std::string& class_name) {
  const fs::path file = path / "config.json";
  const auto text = io::read_text(file, kMaxConfigBytes);
  if (!text) fail(Code::not_found, file.string(), "there is no such file");
  io::JsonConfig config(*text, file.string());
  const std::string found = config.text_or("_class_name", class_name);
  io::Checkpoint weights = part_weights(config, path);
  return {path.filename().string(), found, std::move(config), std::move(weights), {}};
}

TokenizerFiles read_tokenizer_folder(const fs::path& path) {
  return tokenizer_files([&](const char* file) {
    return io::read_text(path / file, kMaxTokenizerBytes).value_or("");
  });
}

}  // namespace rbee::models
