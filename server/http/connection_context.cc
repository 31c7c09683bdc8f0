#include "server/http/connection_context.h"

#include <utility>

namespace rbee::server {

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
