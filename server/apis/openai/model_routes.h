#pragma once
// Lists the served models as OpenAI does: GET /v1/models and GET /v1/models/{id}; as Anthropic does
// if the client sends "anthropic-version".

#include <array>
#include <vector>

#include "server/apis/openai/response.h"
#include "server/http/router.h"
#include "server/worker/service.h"

namespace rbee::server {

Response list_models(const WorkerService& service, const Request& request,
                     const std::vector<OpenAiModel>& models);
Response show_model(const WorkerService& service, const Request& request,
                    const std::vector<OpenAiModel>& models);

// kModels: the models served at the time of a request, at least one.
template <typename Service, std::vector<OpenAiModel> (*kModels)(const Service&)>
constexpr std::array<ServiceRoute<Service>, 4> model_routes() {
  constexpr auto list = [](Service& service, const Request& request) {
    return list_models(service, request, kModels(service));
  };
  constexpr auto show = [](Service& service, const Request& request) {
    return show_model(service, request, kModels(service));
  };
  const auto route = [](std::string_view path, Response (*handler)(Service&, const Request&)) {
    return ServiceRoute<Service>{"GET", path, handler, Body::none, ErrorForm::by_version};
  };
  // Names of models contain slashes.
  return {route("/v1/models", list), route("/v1/models/{+id}", show), route("/models", list),
          route("/models/{+id}", show)};
}

}  // namespace rbee::server
