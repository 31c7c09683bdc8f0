#include "server/worker/model_routes.h"

#include <algorithm>
#include <chrono>

#include "rbee/core/cat.h"

namespace rbee::server {

void add_model_routes(Router& router, std::function<std::vector<OpenAiModel>()> models) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t created = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  router.add({.method = "GET", .pattern = "/v1/models", .handler = [=](const Request&) {
                return json_response(200, openai_models_json(models(), created));
              }});
  // Names of models hold slashes.
  router.add({.method = "GET",
              .pattern = "/v1/models/{+id}",
              .handler = [created, models = std::move(models)](const Request& request) {
                const std::vector<OpenAiModel> served = models();
                const std::string id(request.param("id"));
                const auto found = std::ranges::find(served, id, &OpenAiModel::id);
                if (found != served.end())
                  return json_response(200, openai_model_json(*found, created));
                return json_response(
                    404, openai_error_json(404, "model_not_found",
                                           cat("The model '", id, "' does not exist"), "model"));
              }});
}

}  // namespace rbee::server
