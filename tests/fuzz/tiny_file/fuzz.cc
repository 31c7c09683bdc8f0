// A tiny autoencoder's file with files that may lie beside it, and the network that it describes.
// Input: three texts, each ended by a NUL byte (the headers of taesd_decoder.safetensors and
// taesd_encoder.safetensors, and config.json), then the data of both files. For an empty text there
// is no file.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/image/tiny_autoencoder.h"
#include "rbee/models/image/tiny_file.h"
#include "tests/fuzz/cpu_device.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/weight_folder.h"

namespace {

using namespace rbee;

void build(const models::ModelPart& part) {
  const nn::WeightScope scope(part.weights, {.device = &fuzz::cpu(), .own_names = true});
  const auto config = models::TinyAutoencoderConfig::read(part.config);
  const models::TinyAutoencoder vae(scope, config);
  if (vae.info().scale < 1 || vae.info().latent_channels < 1) throw std::logic_error("no size");
  scope.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view decoder = fuzz::next_field(rest), encoder = fuzz::next_field(rest);
  const std::string_view config = fuzz::next_field(rest);
  static const fuzz::WeightFolder folder;
  try {
    const auto file =
        folder.put("taesd_decoder.safetensors", fuzz::safetensors_file(decoder, rest));
    const auto other = encoder.empty() ? std::string() : fuzz::safetensors_file(encoder, rest);
    folder.put("taesd_encoder.safetensors", other);
    folder.put("config.json", config);
    if (const auto part = models::find_tiny_file(file)) build(*part);
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
