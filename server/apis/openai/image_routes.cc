#include "server/apis/openai/image_routes.h"

#include "server/apis/openai/image_reply.h"
#include "server/apis/openai/image_request.h"
#include "server/apis/openai/model_routes.h"
#include "server/http/error_form.h"
#include "server/http/multipart.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

Response start(ImageService& service, const ImageBody& body) {
  if (body.stream) {
    const char* operation = body.init_image.empty() ? "image_generation" : "image_edit";
    return event_stream(service.start<EventQueue>(body, [&](std::shared_ptr<EventQueue> events) {
      return std::make_unique<OpenAiImageStream>(std::move(events), operation);
    }));
  }
  Response response;
  response.later =
      service.start<DelayedResponse>(body, [&](std::shared_ptr<DelayedResponse> later) {
        return std::make_unique<OpenAiImages>(std::move(later), body.as_url);
      });
  return response;
}

Response answer(ImageService& service, const Request& request, ImageBody body) {
  body.client = request.sender();
  body.room = request.room;
  return service.prepare(std::move(body),
                         [&service](const ImageBody& sent) { return start(service, sent); });
}

Response generate(ImageService& service, const Request& request) {
  return answer(service, request, parse_openai_generation(request.body));
}

template <OpenAiEdit kKind>
Response edit(ImageService& service, const Request& request) {
  const std::string_view type = request.header("content-type");
  if (is_json_type(type)) return answer(service, request, parse_openai_edit(request.body, kKind));
  if (!is_form_type(type)) {
    return error_response(request, 415,
                          {"UNSUPPORTED_MEDIA_TYPE",
                           "the Content-Type must be multipart/form-data or application/json"});
  }
  std::vector<std::pair<std::string, std::string>> fields, files;
  for (FormPart& part : parse_form(type, request.body)) {
    const bool file = !part.filename.empty() || part.name.starts_with("image") ||
                      part.name.starts_with("mask[") || part.name == "mask";
    (file ? files : fields).emplace_back(std::move(part.name), std::move(part.data));
  }
  return answer(service, request, parse_openai_edit(fields, files, kKind));
}

constexpr ImageRoute post(std::string_view path, Response (*handler)(ImageService&, const Request&),
                          Body body) {
  return {.method = "POST",
          .pattern = path,
          .handler = handler,
          .body = body,
          .errors = ErrorForm::openai,
          .named_events = true};
}

constexpr ImageRoute kRoutes[] = {
    post("/v1/images/generations", generate, Body::json),
    post("/v1/images/edits", edit<OpenAiEdit::edit>, Body::none),
    post("/v1/images/variations", edit<OpenAiEdit::variation>, Body::none),
};

std::vector<OpenAiModel> models_of(const ImageService& service) {
  return {{.id = service.model_id(), .parent = {}, .root = {}}};
}

constexpr auto kModelRoutes = model_routes<ImageService, models_of>();

}  // namespace

std::span<const ImageRoute> openai_image_routes() {
  return kRoutes;
}

std::span<const ImageRoute> image_model_routes() {
  return kModelRoutes;
}

}  // namespace rbee::server
