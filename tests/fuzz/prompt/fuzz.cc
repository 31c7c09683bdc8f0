// Prompts with weights: every text is one, and its chunks have the asked length.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/diffusion/prompt.h"

namespace {

using namespace rbee::diffusion;

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

std::vector<int32_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto syntax : {PromptSyntax::a1111, PromptSyntax::comfy, PromptSyntax::none}) {
    const std::vector<PromptPart> parts = parse_prompt(text, syntax);
    require(!parts.empty(), "no part");
    for (const PromptPart& part : parts) require(!std::isnan(part.weight), "no weight");
    const ChunkOptions options{.length = 16, .start = 1000, .end = 1001, .pad = 1002, .comma = ','};
    for (const PromptChunk& chunk : chunk_prompt(parts, bytes_of, options)) {
      require(chunk.ids.size() == 16 && chunk.weights.size() == 16, "a chunk of another length");
    }
  }
  return 0;
}
