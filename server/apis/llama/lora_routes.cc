#include "server/apis/llama/lora_routes.h"

#include "rbee/core/cat.h"
#include "server/apis/text_answers.h"

namespace rbee::server {
namespace {

std::string listed(const LlmService& service) {
  std::vector<LoraEntry> out;
  for (const engine::LoraInfo& info : service.loras()) {
    out.push_back({info.name, info.path, info.scale});
  }
  return lora_list_json(out);
}

Response list(LlmService& service, const Request&) {
  return json_response(200, listed(service));
}

Response set_scales(LlmService& service, const Request& request) {
  service.set_default_loras(parse_lora_scales(request.body));
  return json_response(200, listed(service));
}

Response load(LlmService& service, const Request& request) {
  const auto loaded = [](const LoraOrder& order) {
    return text_response(200, cat("Success: LoRA adapter '", order.name, "' added successfully."));
  };
  return answer_of(service.load_lora(request.sender(), parse_lora_load(request.body), loaded));
}

Response unload(LlmService& service, const Request& request) {
  const LoraOrder order = parse_lora_unload(request.body);
  service.unload_lora(order.name);
  return text_response(200, cat("Success: LoRA adapter '", order.name, "' removed successfully."));
}

constexpr ChatRoute kRoutes[] = {
    {"GET", "/lora-adapters", list},
    {"POST", "/lora-adapters", set_scales, Body::json},
};

constexpr ChatRoute kLoadingRoutes[] = {
    {"POST", "/v1/load_lora_adapter", load, Body::json},
    {"POST", "/v1/unload_lora_adapter", unload, Body::json},
};

}  // namespace

std::span<const ChatRoute> lora_routes() {
  return kRoutes;
}

std::span<const ChatRoute> lora_loading_routes() {
  return kLoadingRoutes;
}

}  // namespace rbee::server
