#include "server/apis/openai/model_routes.h"

#include <algorithm>
#include <chrono>

#include "rbee/core/cat.h"
#include "server/apis/anthropic/response.h"
#include "server/http/clock.h"
#include "server/http/error_form.h"

namespace rbee::server {
namespace {

std::string created_text(const WorkerService& service) {
  const std::chrono::seconds since(service.started_at());
  return iso8601(std::chrono::system_clock::time_point(since));
}

}  // namespace

Response list_models(const WorkerService& service, const Request& request,
                     const std::vector<OpenAiModel>& models) {
  if (!is_anthropics(request)) {
    return json_response(200, openai_models_json(models, service.started_at()));
  }
  std::vector<std::string> ids;
  ids.reserve(models.size());
  for (const OpenAiModel& model : models) ids.push_back(model.id);
  return json_response(200, anthropic_models_json(ids, created_text(service)));
}

Response show_model(const WorkerService& service, const Request& request,
                    const std::vector<OpenAiModel>& models) {
  const std::string id(request.param("id"));
  const auto found = std::ranges::find_if(models, [&](const OpenAiModel& model) {
    return model.id == id || std::ranges::count(model.aliases, id) > 0;
  });
  if (found == models.end()) {
    const std::string message = cat("The model '", id, "' does not exist");
    return error_response(request, 404, {"model_not_found", message, "model"});
  }
  return json_response(200, is_anthropics(request)
                                ? anthropic_model_json(found->id, created_text(service))
                                : openai_model_json(*found, service.started_at()));
}

}  // namespace rbee::server
