#pragma once
// Shared by the handlers of every API for text.

#include <functional>

#include "server/llm/service.h"
#include "server/worker/routes.h"

namespace rbee::server {

// Fills in the client, and defaults for absent fields. `open`: those of set_open_defaults(), which
// all APIs take except the worker's own and llama-server's.
enum class Defaults : uint8_t { own, open };
void fill_in(const LlmService& service, const Request& request, Defaults defaults,
             GenerateRequest& body);

// The guarded result of `answer`, run on the thread that LlmService::prepare() chooses.
Response prepared(LlmService& service, const Request& request, LlmService::Preparation work,
                  const ErrorBody& errors, std::function<Response()> answer);

// The same for work that needs only the tokenizer or the template.
Response beside(LlmService& service, const Request& request, const ErrorBody& errors,
                std::function<Response()> answer);

// A whole answer that comes later, or a stream of events.
Response answer_of(std::shared_ptr<DelayedResponse> later);

}  // namespace rbee::server
