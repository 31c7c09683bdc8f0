#pragma once
// What the handlers of every API for text do alike.

#include <functional>

#include "server/llm/service.h"
#include "server/worker/routes.h"

namespace rbee::server {

// What `answer` answers, or what `errors` makes of what it throws.
template <typename Answer>
Response guarded(const ErrorBody& errors, const Answer& answer) {
  try {
    return answer();
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), errors);
  }
}

// Fills in who asks, and the defaults of what the request does not say. `open` defaults are those
// of OpenAI's and Anthropic's APIs; see set_open_defaults().
enum class Defaults : uint8_t { own, open };
void fill_in(const LlmService& service, const Request& request, Defaults defaults,
             GenerateRequest& body);

// What `answer` answers, guarded, from the thread that LlmService::prepare() gives it.
Response prepared(LlmService& service, const Request& request, LlmService::Preparation work,
                  const ErrorBody& errors, std::function<Response()> answer);

// The same of what needs the tokenizer or the template alone.
Response beside(LlmService& service, const Request& request, const ErrorBody& errors,
                std::function<Response()> answer);

// A whole answer that comes later, or a stream of events.
Response answer_of(std::shared_ptr<DelayedResponse> later);

}  // namespace rbee::server
