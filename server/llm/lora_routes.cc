#include "server/llm/lora_routes.h"

#include "server/contract/lora_fields.h"

namespace rbee::server {
namespace {

std::string listed(const LlmService& service) {
  std::vector<LoraEntry> out;
  for (const engine::LoraInfo& info : service.loras()) {
    out.push_back({info.name, info.path, info.scale});
  }
  return lora_list_json(out);
}

}  // namespace

void add_lora_routes(Router& router, LlmService& service, bool may_load) {
  router.add({.method = "GET", .pattern = "/lora-adapters", .handler = [&service](const Request&) {
                return json_response(200, listed(service));
              }});
  const auto post = [&](const char* path, Handler handler) {
    router.add(
        {.method = "POST", .pattern = path, .handler = std::move(handler), .body = Body::json});
  };
  post("/lora-adapters", [&service](const Request& request) {
    service.set_default_loras(parse_lora_scales(request.body));
    return json_response(200, listed(service));
  });
  if (!may_load) return;
  post("/v1/load_lora_adapter", [&service](const Request& request) {
    Response response;
    const auto loaded = [](const LoraOrder& order) {
      return text_response(200,
                           cat("Success: LoRA adapter '", order.name, "' added successfully."));
    };
    response.later = service.load_lora(request.sender(), parse_lora_load(request.body), loaded);
    return response;
  });
  post("/v1/unload_lora_adapter", [&service](const Request& request) {
    const LoraOrder order = parse_lora_unload(request.body);
    service.unload_lora(order.name);
    return text_response(200,
                         cat("Success: LoRA adapter '", order.name, "' removed successfully."));
  });
}

}  // namespace rbee::server
