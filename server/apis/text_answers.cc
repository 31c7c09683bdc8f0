#include "server/apis/text_answers.h"

#include "server/apis/open_defaults.h"

namespace rbee::server {
namespace {

SideWork::Task task_of(const Request& request, const ErrorBody& errors,
                       std::function<Response()> answer) {
  return {.client = request.sender(),
          .work = [errors, answer = std::move(answer)] { return guarded(errors, answer); },
          .error_body = errors};
}

}  // namespace

void fill_in(const LlmService& service, const Request& request, Defaults defaults,
             GenerateRequest& body) {
  body.client = request.sender();
  service.set_defaults(body);
  if (defaults == Defaults::open) set_open_defaults(body, service.engine().model().sampling);
}

Response prepared(LlmService& service, const Request& request, LlmService::Preparation work,
                  const ErrorBody& errors, std::function<Response()> answer) {
  return service.prepare(work, task_of(request, errors, std::move(answer)));
}

Response beside(LlmService& service, const Request& request, const ErrorBody& errors,
                std::function<Response()> answer) {
  return answer_of(service.beside(task_of(request, errors, std::move(answer))));
}

Response answer_of(std::shared_ptr<DelayedResponse> later) {
  Response response;
  response.later = std::move(later);
  return response;
}

}  // namespace rbee::server
