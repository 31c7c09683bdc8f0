// An image model in one file, read and loaded as far as possible, and the same file as a VAE.
// Input: a GGUF file, or see padded_file.h.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/image/single_file.h"
#include "tests/fuzz/cpu_device.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/padded_file.h"

namespace {

using namespace rbee;

void load(const std::filesystem::path& file) {
  const models::ImageModel model =
      models::load_image_model(models::read_single_file(file), {.device = &fuzz::cpu()});
  if (model.denoiser == nullptr || model.vae == nullptr) throw std::logic_error("a part is absent");
  if (model.denoiser->info().out_channels != model.vae->info().latent_channels) {
    throw std::logic_error("latents that do not fit");
  }
}

void load_vae(const std::filesystem::path& file) {
  const models::ModelPart part = models::read_vae_file(file, models::ImageFamily::sd1);
  if (part.weights.tensors().empty()) throw std::logic_error("a VAE without tensors");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const fuzz::WeightFolder folder;
  const bool gguf = input.starts_with("GGUF");
  const auto file = gguf ? folder.put("model.gguf", input)
                         : folder.put("model.safetensors", fuzz::padded_safetensors(input));
  for (const auto& read : {load, load_vae}) {
    try {
      read(file);
    } catch (const Error& error) {
      fuzz::expect_reason(error);
    }
  }
  return 0;
}
