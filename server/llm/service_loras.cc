// Selects a request's adapters.

#include <algorithm>

#include "server/llm/service.h"

namespace rbee::server {
namespace {

constexpr const char* kField = "lora";

auto find(const std::vector<engine::LoraInfo>& adapters, std::string_view name) {
  return std::ranges::find(adapters, name, &engine::LoraInfo::name);
}

}  // namespace

// Replaces ids, which are indices into the engine's list, by names.
std::vector<engine::LoraChoice> LlmService::named(const std::vector<LoraField>& fields) const {
  const std::vector<engine::LoraInfo> known = engine_.loras();
  std::vector<engine::LoraChoice> out;
  for (const LoraField& field : fields) {
    if (!field.id) {
      out.push_back({field.name, field.scale});
      continue;
    }
    const auto id = static_cast<size_t>(*field.id);
    if (id >= known.size()) {
      fail(Code::not_found, kField, "there is no adapter of id ", id, "; there are ", known.size());
    }
    out.push_back({known[id].name, field.scale});
  }
  return out;
}

// A list selects alone; without one, the model's name may be an adapter's.
std::vector<engine::LoraChoice> LlmService::loras_of(const GenerateRequest& request) const {
  if (request.lora) return named(*request.lora);
  const std::vector<engine::LoraInfo> known = engine_.loras();
  if (find(known, request.model) != known.end()) return {{request.model, {}}};
  const std::scoped_lock lock(loras_mutex_);
  std::vector<engine::LoraChoice> out;
  for (const engine::LoraChoice& choice : default_loras_) {
    // Skips one that was unloaded meanwhile.
    if (find(known, choice.name) != known.end()) out.push_back(choice);
  }
  return out;
}

std::string LlmService::answering_model(const GenerateRequest& request) const {
  const std::vector<engine::LoraInfo> known = engine_.loras();
  return find(known, request.model) == known.end() ? model_id() : request.model;
}

std::vector<engine::LoraInfo> LlmService::loras() const {
  std::vector<engine::LoraInfo> out = engine_.loras();
  const std::scoped_lock lock(loras_mutex_);
  for (engine::LoraInfo& info : out) {
    const auto chosen = std::ranges::find(default_loras_, info.name, &engine::LoraChoice::name);
    info.scale = chosen == default_loras_.end() ? 0 : chosen->scale.value_or(info.scale);
  }
  return out;
}

void LlmService::set_default_loras(const std::vector<LoraField>& scales) {
  std::vector<engine::LoraChoice> wanted = named(scales);
  const std::vector<engine::LoraInfo> known = engine_.loras();
  for (const engine::LoraChoice& choice : wanted) {
    if (find(known, choice.name) != known.end()) continue;
    fail(Code::not_found, kField, "there is no adapter \"", choice.name, "\"");
  }
  const std::scoped_lock lock(loras_mutex_);
  default_loras_ = std::move(wanted);
}

std::shared_ptr<DelayedResponse> LlmService::load_lora(
    const std::string& client, const LoraOrder& order,
    std::function<Response(const LoraOrder&)> loaded) {
  return side_work_.submit({.client = client, .work = [this, order, loaded = std::move(loaded)] {
                              engine_.load_lora({.name = order.name, .path = order.path});
                              return loaded(order);
                            }});
}

void LlmService::unload_lora(const std::string& name) {
  if (!engine_.unload_lora(name)) {
    fail(Code::not_found, kField, "there is no adapter \"", name, "\"");
  }
}

}  // namespace rbee::server
