#include "server/apis/chat_routes.h"

#include "server/apis/anthropic/routes.h"
#include "server/apis/cohere/routes.h"
#include "server/apis/llama/lora_routes.h"
#include "server/apis/llama/routes.h"
#include "server/apis/llama/text_routes.h"
#include "server/apis/ollama/routes.h"
#include "server/apis/openai/chat_routes.h"
#include "server/apis/openai/embedding_refusals.h"
#include "server/apis/own/chat_routes.h"
#include "server/apis/responses/conversation_routes.h"
#include "server/apis/responses/routes.h"
#include "server/apis/tgi/routes.h"
#include "server/llm/page.h"
#include "server/worker/routes.h"

namespace rbee::server {

std::vector<ChatRoute> chat_route_list() {
  std::vector<ChatRoute> out;
  for (const std::span<const ChatRoute> routes :
       {own_chat_routes(), openai_chat_routes(), chat_model_routes(), responses_routes(),
        conversation_routes(), anthropic_routes(), cohere_routes(), llama_routes(), text_routes(),
        lora_routes(), tgi_routes(), ollama_routes(), page_routes()}) {
    out.insert(out.end(), routes.begin(), routes.end());
  }
  return out;
}

Router chat_routes(LlmService& service, std::function<void()> shutdown,
                   const ChatRouteOptions& options) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  add_api_document(router, chat_api_document());
  for (const ChatRoute& route : chat_route_list()) router.add(route, service);
  for (const ChatRoute& route : embedding_refusals()) router.add(route, service);
  for (const ChatRoute& route : ollama_embedding_refusals()) router.add(route, service);
  if (options.kv_events) add_kv_event_route(router, service, options.kv_events);
  if (options.lora_loading) {
    for (const ChatRoute& route : lora_loading_routes()) router.add(route, service);
  }
  return router;
}

}  // namespace rbee::server
