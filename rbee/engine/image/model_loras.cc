#include "rbee/engine/image/model_loras.h"

#include <algorithm>

#include "rbee/core/log.h"
#include "rbee/engine/api/image_loras.h"

namespace rbee::engine {
namespace {

std::vector<LoraUse> loras_of(const ImageRequest& request) {
  return prompt_loras(request).loras;
}

bool is_same_lora(const models::LoraSource& a, const models::LoraSource& b) {
  return a.path == b.path && a.weight == b.weight && a.text_weight == b.text_weight;
}

}  // namespace

std::string adapters_of(const ImageRequest& request) {
  std::string out;
  for (const LoraUse& lora : loras_of(request)) {
    const float text = lora.text_strength.value_or(lora.strength);
    out += cat(lora.path.size(), ":", lora.path, ":", lora.strength, ":", text, ";");
  }
  return out;
}

void ModelLoras::set(const ImageRequest& request) {
  std::vector<models::LoraSource> wanted;
  for (const LoraUse& lora : loras_of(request)) {
    wanted.push_back({source_.loras.find(lora.path), lora.strength, lora.text_strength});
  }
  if (!unsure_ && std::ranges::equal(wanted, present_, is_same_lora)) return;
  log(LogLevel::info, "the model gets other LoRAs", {{"loras", cat(wanted.size())}});
  // After a failure the model has the old ones or none; the next request asks again.
  unsure_ = true;
  pipeline_.forget_prompts();
  try {
    source_.change_loras(source_.model, wanted);
  } catch (const Error& error) {
    log(LogLevel::warn, "LoRAs could not be taken", {{"reason", error.what()}});
    fail_with(error, wanted);
  }
  unsure_ = false;
  present_ = std::move(wanted);
}

// Clients see an adapter's name without the folders above, and nothing of the model's own files.
[[noreturn]] void ModelLoras::fail_with(const Error& error,
                                        const std::vector<models::LoraSource>& wanted) const {
  const std::string reason = error.what();
  const bool adapter = std::ranges::any_of(wanted, [&](const models::LoraSource& lora) {
    return reason.find(lora.path.string()) != std::string::npos;
  });
  if (adapter || reason.find('/') == std::string::npos) {
    fail(error.code(), "loras", source_.loras.without_folder(reason));
  }
  fail(Code::internal, "loras", "the model's own files cannot be read again; the log says why");
}

}  // namespace rbee::engine
