// A textual inversion file, read for models with one and with two text encoders. Input: see
// padded_file.h.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/image/embedding.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/padded_file.h"
#include "tests/fuzz/text_encoder.h"

namespace {

using namespace rbee;

void read(const std::filesystem::path& file, const models::ImageModel& model) {
  const models::TextEmbedding found = models::read_embedding(file, model);
  if (found.count < 1) throw std::logic_error("a word without vectors");
  if (found.vectors.size() != model.text.size()) throw std::logic_error("other encoders");
  for (size_t i = 0; i < model.text.size(); ++i) {
    const size_t size = found.vectors[i].size();
    const int64_t wanted = found.count * model.text[i].encoder->width();
    if (size != 0 && static_cast<int64_t>(size) != wanted) throw std::logic_error("its size");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const models::ImageModel small = fuzz::model_of(models::ImageFamily::sd1, {4});
  static const models::ImageModel large = fuzz::model_of(models::ImageFamily::sdxl, {4, 6});
  static const fuzz::WeightFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto file = folder.put("word.safetensors", fuzz::padded_safetensors(input));
  for (const models::ImageModel* model : {&small, &large}) {
    try {
      read(file, *model);
    } catch (const Error& error) {
      fuzz::expect_reason(error);
    }
  }
  return 0;
}
