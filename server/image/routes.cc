#include "server/image/routes.h"

#include "rbee/core/cat.h"
#include "server/contract/image_responses.h"
#include "server/contract/openai_responses.h"
#include "server/http/error_form.h"
#include "server/http/multipart.h"
#include "server/image/page.h"
#include "server/worker/model_routes.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

Response create_job(ImageService& service, const Request& request) {
  ImageJobBody body = parse_image_job(request.body);
  ImageBody& image = body.image;
  image.client = request.sender();
  return service.prepare(image,
                         [&service, body] { return job_created(*service.create_job(body)); });
}

Response answer(ImageService& service, const Request& request, ImageBody body) {
  body.client = request.sender();
  return service.prepare(body, [&service, body] {
    if (body.stream) return event_stream(service.openai_stream(body));
    Response response;
    response.later = service.openai_images(body);
    return response;
  });
}

Response edit(ImageService& service, const Request& request, OpenAiEdit kind) {
  const std::string_view type = request.header("content-type");
  if (is_json_type(type)) return answer(service, request, parse_openai_edit(request.body, kind));
  if (!is_form_type(type)) {
    return error_response(request, 415,
                          {"UNSUPPORTED_MEDIA_TYPE",
                           "the Content-Type must be multipart/form-data or application/json"});
  }
  std::vector<std::pair<std::string, std::string>> fields, files;
  for (FormPart& part : parse_form(type, request.body)) {
    const bool file =
        !part.filename.empty() || part.name.starts_with("image") || part.name == "mask";
    (file ? files : fields).emplace_back(std::move(part.name), std::move(part.data));
  }
  return answer(service, request, parse_openai_edit(fields, files, kind));
}

Response sdapi(ImageService& service, const Request& request, bool img2img) {
  ImageBody body = parse_sdapi(request.body, img2img);
  body.client = request.sender();
  return service.prepare(body, [&service, body] {
    Response response;
    response.later = service.sdapi_images(body);
    return response;
  });
}

std::vector<SdapiName> names(const std::vector<engine::NamedChoice>& choices) {
  std::vector<SdapiName> out;
  for (const engine::NamedChoice& choice : choices) out.push_back({choice.name, choice.aliases});
  return out;
}

void add_get(Router& router, const char* path, Handler handler) {
  router.add({.method = "GET", .pattern = path, .handler = std::move(handler)});
}

void add_post(Router& router, const char* path, Handler handler, Body body) {
  router.add({.method = "POST", .pattern = path, .handler = std::move(handler), .body = body});
}

void add_openai_routes(Router& router, ImageService& service) {
  add_model_routes(router, [&service] {
    return std::vector<OpenAiModel>{{.id = service.model(), .parent = {}, .root = {}}};
  });
  add_post(
      router, "/v1/images/generations",
      [&](const Request& request) {
        return answer(service, request, parse_openai_generation(request.body));
      },
      Body::json);
  for (const auto& [path, kind] : {std::pair{"/v1/images/edits", OpenAiEdit::edit},
                                   std::pair{"/v1/images/variations", OpenAiEdit::variation}}) {
    add_post(
        router, path,
        [&service, what = kind](const Request& request) { return edit(service, request, what); },
        Body::none);
  }
}

void add_sdapi_requests(Router& router, ImageService& service) {
  for (const bool img2img : {false, true}) {
    add_post(
        router, img2img ? "/sdapi/v1/img2img" : "/sdapi/v1/txt2img",
        [&service, img2img](const Request& request) { return sdapi(service, request, img2img); },
        Body::json);
  }
  using engine::Hurry;
  for (const auto& [path, how] : {std::pair{"/sdapi/v1/interrupt", Hurry::request},
                                  std::pair{"/sdapi/v1/skip", Hurry::pictures}}) {
    add_post(
        router, path,
        [&service, what = how](const Request& request) {
          service.interrupt(what, request.sender());
          return json_response(200, "{}");
        },
        Body::none);
  }
  add_post(
      router, "/sdapi/v1/png-info",
      [&service](const Request& request) {
        return service.beside(request.sender(), [image = parse_png_info(request.body)] {
          return json_response(200, sdapi_png_info_json(ImageService::png_info(image)));
        });
      },
      Body::json);
  for (const bool batch : {false, true}) {
    add_post(
        router, batch ? "/sdapi/v1/extra-batch-images" : "/sdapi/v1/extra-single-image",
        [&service, batch](const Request& request) {
          SdapiUpscale wanted = parse_sdapi_upscale(request.body, batch);
          wanted.client = request.sender();
          Response response;
          response.later = service.enlarged(std::move(wanted));
          return response;
        },
        Body::json);
  }
  add_post(
      router, "/sdapi/v1/interrogate",
      [](const Request&) {
        return error_response(501, "NOT_IMPLEMENTED",
                              "interrogate: this worker has no model that describes pictures");
      },
      Body::json);
}

// What the server has and what it is doing.
void add_sdapi_facts(Router& router, ImageService& service) {
  // One model is served with fixed options.
  add_post(
      router, "/sdapi/v1/options",
      [&](const Request& request) {
        service.check_served("sd_model_checkpoint", parse_sdapi_options(request.body));
        return json_response(200, "{}");
      },
      Body::json);
  const auto get = [&](const char* path, std::function<std::string()> make) {
    add_get(router, path,
            [make = std::move(make)](const Request&) { return json_response(200, make()); });
  };
  add_get(router, "/sdapi/v1/progress", [&](const Request& request) {
    return json_response(200, sdapi_progress_json(service.progress(request.sender())));
  });
  add_post(
      router, "/internal/progress",
      [&](const Request& request) {
        const SdapiTask task = parse_sdapi_task(request.body);
        return json_response(200, sdapi_task_json(service.task_progress(task.id), task.preview));
      },
      Body::json);
  get("/sdapi/v1/samplers", [] { return sdapi_samplers_json(names(engine::sampler_choices())); });
  get("/sdapi/v1/schedulers",
      [] { return sdapi_schedulers_json(names(engine::schedule_choices())); });
  get("/sdapi/v1/sd-models", [&] { return sdapi_models_json(service.model()); });
  get("/sdapi/v1/options", [&] { return sdapi_options_json(service.model()); });
  get("/sdapi/v1/upscalers", [&] { return sdapi_upscalers_json(service.upscalers()); });
  get("/sdapi/v1/embeddings", [&] { return sdapi_embeddings_json(service.embeddings()); });
  add_get(router, "/sdapi/v1/loras", [&service](const Request& request) {
    return service.beside(request.sender(), [&service] {  // files are read for it
      std::vector<SdapiLora> loras;
      for (auto& [path, alias] : service.loras()) loras.push_back({path, alias});
      return json_response(200, sdapi_loras_json(loras));
    });
  });
  // Of AUTOMATIC1111's extension, which clients ask before they offer ControlNets.
  get("/controlnet/model_list", [&] { return controlnet_models_json(service.controls()); });
  get("/controlnet/control_types", [&] { return controlnet_types_json(service.controls()); });
  for (const std::string_view path : sdapi_fixed_paths()) {
    get(path.data(), [path] { return sdapi_fixed_json(path); });
  }
  get("/sdapi/v1/memory", [&] {
    const auto [total, free] = service.device_memory();
    return sdapi_memory_json(total, free);
  });
  // The model stays where it is, and files are looked up as requests name them.
  for (const char* what : {"refresh-checkpoints", "refresh-vae", "refresh-loras",
                           "refresh-embeddings", "unload-checkpoint", "reload-checkpoint"}) {
    add_post(
        router, cat("/sdapi/v1/", what).c_str(),
        [](const Request&) { return json_response(200, "{}"); }, Body::none);
  }
}

}  // namespace

Router image_routes(ImageService& service, std::function<void()> shutdown) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  add_api_document(router, image_api_files().front().text);
  for (const char* path : {"/v1/jobs", "/v1/inference"}) {
    add_post(
        router, path, [&](const Request& request) { return create_job(service, request); },
        Body::json);
  }
  add_openai_routes(router, service);
  add_sdapi_requests(router, service);
  add_sdapi_facts(router, service);
  return router;
}

}  // namespace rbee::server
