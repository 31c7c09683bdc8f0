// Texts about how a picture was made: the settings in strangers' files, and prompts that name
// LoRAs. The settings that were read must be checkable like any request.

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/engine/api/image_loras.h"
#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/infotext/infotext.h"
#include "rbee/io/image/png.h"

namespace {

using namespace rbee;

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

void split(std::string_view text) {
  try {
    const engine::PromptLoras found = engine::split_loras(text);
    const auto tags = static_cast<size_t>(std::ranges::count(text, '>'));
    require(found.loras.size() <= tags, "more LoRAs than tags");
    require(tags == 0 ? found.prompt == text : found.prompt.size() <= text.size(),
            "another prompt");
    for (const engine::LoraUse& lora : found.loras) require(!lora.path.empty(), "no name");
  } catch (const Error&) {
  }
}

void read_settings(std::string_view text) {
  try {
    engine::ImageRequest request = engine::parse_parameters(text);
    request.job_id = "fuzz";
    engine::validate(request);
  } catch (const Error&) {
  }
}

// As another program's text in a PNG file.
void read_file(std::string_view text) {
  static const io::Pixels pixel{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  for (const char* key : {"prompt", "invokeai_metadata", "sd-metadata", "Dream",
                          "num_inference_steps", "XML:com.adobe.xmp", "Comment", "parameters"}) {
    const std::string file =
        io::encode_png(pixel, {{"Software", "NovelAI"}, {key, std::string(text)}});
    if (const auto found = engine::read_infotext(file)) read_settings(*found);
  }
}

// In the lowest bits of opacity, one byte per column.
void read_pixels(std::string_view text) {
  for (const std::string_view mark : {"stealth_pnginfo", "stealth_pngcomp"}) {
    std::string bytes(mark);
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes += static_cast<char>(text.size() * 8 >> shift);
    bytes += text;
    io::Pixels pixels{.width = static_cast<int32_t>(bytes.size()),
                      .height = 8,
                      .channels = 4,
                      .values = std::vector<uint8_t>(bytes.size() * 32)};
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      const size_t place = i % 8 * bytes.size() + i / 8;
      pixels.values[place * 4 + 3] = static_cast<uint8_t>(bytes[i / 8]) >> (7 - i % 8) & 1;
    }
    if (const auto found = engine::read_infotext(io::encode_png(pixels))) read_settings(*found);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  split(text);
  read_settings(text);
  read_file(text);
  read_pixels(text);
  return 0;
}
