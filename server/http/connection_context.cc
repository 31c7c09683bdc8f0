#include "server/http/connection_context.h"

#include <utility>

#include "server/http/error_form.h"

namespace rbee::server {

std::optional<Response> refuse_bytes(const ConnectionContext& context, Request& request,
                                     size_t bytes) {
  if (bytes <= kSmallBody) return std::nullopt;
  if (!request.room) request.room = context.room.part(request.sender());
  if (request.room->grow_to(bytes)) return std::nullopt;
  Response out = error_response(
      request, 429, {"OVERLOADED", "The server holds too many large bodies; send it again later"});
  out.headers.emplace_back("Retry-After", "1");
  return out;
}

Response run_beside(const ConnectionContext& context, const Route& route, const Request& head,
                    std::string body) {
  const auto request = std::make_shared<Request>(head);
  request->body = std::move(body);
  Response response;
  response.later = context.bodies->submit(
      {.client = request->sender(), .work = [&router = context.router, &route, request] {
         const TraceScope scope(request->trace);
         return router.run(route, *request);
       }});
  return response;
}

}  // namespace rbee::server
