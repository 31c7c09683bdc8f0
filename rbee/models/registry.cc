#include "rbee/models/registry.h"

#include <algorithm>

#include "rbee/models/gemma2/model.h"
#include "rbee/models/gemma3/model.h"
#include "rbee/models/llama/model.h"
#include "rbee/models/phi3/model.h"
#include "rbee/models/qwen2/model.h"
#include "rbee/models/qwen3/model.h"

namespace rbee::models {
namespace {

constexpr Family kFamilies[] = {
    {"llama", load_llama}, {"mistral", load_llama},      {"qwen2", load_qwen2},
    {"qwen3", load_qwen3}, {"gemma2", load_gemma2},      {"gemma3", load_gemma3},
    {"phi3", load_phi3},   {"gemma3_text", load_gemma3},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

std::unique_ptr<LanguageModel> load_language_model(const io::Checkpoint& checkpoint,
                                                   const LoadOptions& options) {
  check(options.device != nullptr, "load_language_model", "no device is given");
  const std::string architecture = checkpoint.architecture();
  const auto family = std::ranges::find(kFamilies, architecture, &Family::architecture);
  if (family != std::end(kFamilies)) return family->load(checkpoint, options);
  std::string known;
  for (const Family& each : kFamilies) known += cat(known.empty() ? "" : ", ", each.architecture);
  fail(Code::unsupported, "load_language_model", "architecture \"", architecture,
       "\" is not implemented; known are ", known);
}

}  // namespace rbee::models
