#pragma once
// One answer to one request, as a stream or whole, for APIs whose replies know themselves.

#include <memory>
#include <string>

#include "server/llm/service.h"

namespace rbee::server {

// What `Stream` or `Whole`, both Replies, make of the request, as `body.stream` says; it must be
// set. Each is made of where it writes and of what `about(job_id)` tells it. Throws what
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
