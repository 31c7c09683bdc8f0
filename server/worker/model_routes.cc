#include "server/worker/model_routes.h"

#include <algorithm>
#include <chrono>

#include "rbee/core/cat.h"
#include "server/contract/anthropic_responses.h"
#include "server/http/clock.h"

namespace rbee::server {
namespace {

class ModelRoutes {
 public:
  explicit ModelRoutes(std::function<std::vector<OpenAiModel>()> models)
      : models_(std::move(models)), created_(std::chrono::system_clock::now()) {}

  Response list(const Request& request) const {
    const std::vector<OpenAiModel> served = models_();
    if (!is_anthropic(request)) return json_response(200, openai_models_json(served, seconds()));
    std::vector<std::string> ids;
    ids.reserve(served.size());
    for (const OpenAiModel& model : served) ids.push_back(model.id);
    return json_response(200, anthropic_models_json(ids, iso8601(created_)));
  }

  Response one(const Request& request) const {
    const std::vector<OpenAiModel> served = models_();
    const std::string id(request.param("id"));
    const auto found = std::ranges::find_if(served, [&](const OpenAiModel& model) {
      return model.id == id || std::ranges::count(model.aliases, id) > 0;
    });
    const bool anthropic = is_anthropic(request);
    if (found == served.end()) {
      const std::string message = cat("The model '", id, "' does not exist");
      return json_response(404, anthropic
                                    ? anthropic_error_json(404, message)
                                    : openai_error_json(404, "model_not_found", message, "model"));
    }
    return json_response(200, anthropic ? anthropic_model_json(found->id, iso8601(created_))
                                        : openai_model_json(*found, seconds()));
  }

 private:
  static bool is_anthropic(const Request& request) {
    return !request.header("anthropic-version").empty();
  }

  int64_t seconds() const {
    return std::chrono::duration_cast<std::chrono::seconds>(created_.time_since_epoch()).count();
  }

  std::function<std::vector<OpenAiModel>()> models_;
  std::chrono::system_clock::time_point created_;
};

}  // namespace

void add_model_routes(Router& router, std::function<std::vector<OpenAiModel>()> models) {
  const auto routes = std::make_shared<const ModelRoutes>(std::move(models));
  for (const std::string base : {"/v1/models", "/models"}) {
    router.add({.method = "GET", .pattern = base, .handler = [routes](const Request& request) {
                  return routes->list(request);
                }});
    // Names of models hold slashes.
    router.add({.method = "GET",
                .pattern = base + "/{+id}",
                .handler = [routes](const Request& request) { return routes->one(request); }});
  }
}

}  // namespace rbee::server
