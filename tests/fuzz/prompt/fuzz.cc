// Prompts with weights: every text is valid, and its chunks have the requested length.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/diffusion/prompt.h"
#include "rbee/diffusion/prompt_schedule.h"

namespace {

using namespace rbee::diffusion;

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

// A changing prompt has a text for each call, and no part is longer than the prompt.
void check_schedule(std::string_view text, const PromptCalls& calls) {
  for (const PromptShare& share : split_prompt(text)) {
    require(std::isfinite(share.weight), "no weight of a part");
    const std::vector<PromptAt> schedule = schedule_prompt(share.text, calls);
    require(!schedule.empty() && schedule.back().last == calls.calls, "an end is missing");
    int32_t before = 0;
    for (const PromptAt& at : schedule) {
      require(at.last > before, "ends do not rise");
      require(at.text.size() <= share.text.size(), "a text grew");
      before = at.last;
    }
  }
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
  check_schedule(text, {.calls = 7});
  check_schedule(text, {.calls = 6, .before = 7});
  return 0;
}
