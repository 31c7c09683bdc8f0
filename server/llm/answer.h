#pragma once
// One answer to one request, streamed or whole, for APIs whose replies need no more than this.

#include <memory>
#include <string>

#include "server/llm/service.h"

namespace rbee::server {

// Answers with `Stream` or `Whole`, both Replies, according to `body.stream`, which must be set.
// Each is constructed from its destination and the result of `about(job_id)`. Throws what
// LlmService::stream() does.
template <typename Stream, typename Whole, typename About>
Response one_answer(LlmService& service, const GenerateRequest& body, const About& about) {
  if (*body.stream) {
    return event_stream(
        service.stream(body, [&](const std::string& id, std::shared_ptr<EventQueue> queue) {
          return std::make_unique<Stream>(std::move(queue), about(id));
        }));
  }
  Response response;
  response.later =
      service.whole(body, [&](const std::string& id, std::shared_ptr<DelayedResponse> later) {
        return std::make_unique<Whole>(std::move(later), about(id));
      });
  return response;
}

}  // namespace rbee::server
