#include "server/apis/a1111/routes.h"

#include <algorithm>
#include <array>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/infotext/infotext.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/pixels.h"
#include "server/apis/a1111/reply.h"
#include "server/apis/a1111/request.h"
#include "server/apis/a1111/response.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// Throws invalid_argument, naming the field, if `name` is not the served model's. A name may have a
// file's ending and a hash after it. Empty: no name.
void check_served(const ImageService& service, const char* field, std::string_view name) {
  std::string_view plain = name;
  // AUTOMATIC1111 lists files, with their hashes: "v1.safetensors [d14c016b]".
  if (plain.ends_with(']')) plain = plain.substr(0, plain.rfind(" ["));
  for (const std::string_view ending : {".safetensors", ".gguf", ".ckpt"}) {
    if (plain.ends_with(ending)) plain.remove_suffix(ending.size());
  }
  const std::string served = service.model_id();
  check(name.empty() || name == served || plain == served, field, "\"", name, "\" is not \"",
        served, "\", the one model that is served");
}

// Forge's cfg_scale is the guidance beside a negative prompt, distilled_cfg_scale the model's own.
void set_distilled_guidance(const ImageService& service, ImageBody& body) {
  if (!body.distilled_guidance || service.model().architecture != "flux") return;
  if (body.settings.guidance_scale.value_or(1) > 1) {
    fail(Code::unsupported, "cfg_scale",
         "must be 1 beside distilled_cfg_scale: ", "the model has no negative prompt");
  }
  body.settings.guidance_scale = body.distilled_guidance;
}

Response start(ImageService& service, ImageBody body) {
  check_served(service, "override_settings.sd_model_checkpoint", body.checkpoint);
  check_served(service, "hr_checkpoint_name", body.hires_checkpoint);
  set_distilled_guidance(service, body);
  service.set_default_previews(body);
  Response response;
  response.later =
      service.start<DelayedResponse>(body, [&](std::shared_ptr<DelayedResponse> later) {
        return std::make_unique<SdapiImages>(std::move(later), body.request, body.send_images);
      });
  return response;
}

template <bool kImg2Img>
Response draw(ImageService& service, const Request& request) {
  ImageBody body = parse_sdapi(request.body, kImg2Img);
  body.client = request.sender();
  body.room = request.room;
  return service.prepare(std::move(body),
                         [&service](ImageBody sent) { return start(service, std::move(sent)); });
}

template <engine::Hurry kHow>
Response hurry(ImageService& service, const Request& request) {
  service.interrupt(kHow, request.sender());
  return json_response(200, "{}");
}

// The settings in a picture's file. Throws Error for invalid base64, and for settings that are not
// numbers.
SdapiPngInfo read_png_info(std::string_view base64) {
  const std::string bytes = io::decode_base64(base64, "image");
  // Any size is allowed, because no pixel is decoded.
  constexpr io::ImageLimits kAny{.side = INT32_MAX, .pixels = INT64_MAX};
  static_cast<void>(io::read_image_header(bytes, "image", kAny));
  SdapiPngInfo out;
  out.text = engine::read_infotext(bytes).value_or("");
  if (!out.text.empty()) out.fields = engine::infotext_fields(out.text);
  return out;
}

Response png_info(ImageService& service, const Request& request) {
  return service.beside(request.sender(), [image = parse_png_info(request.body)] {
    return json_response(200, sdapi_png_info_json(read_png_info(image)));
  });
}

template <bool kBatch>
Response enlarge(ImageService& service, const Request& request) {
  UpscaleOrder wanted = parse_sdapi_upscale(request.body, kBatch);
  wanted.client = request.sender();
  Response response;
  response.later = service.enlarged(std::move(wanted), [](const std::vector<std::string>& made) {
    return json_response(
        200, kBatch ? sdapi_extra_images_json(made) : sdapi_extra_image_json(made.front()));
  });
  return response;
}

Response interrogate(ImageService&, const Request&) {
  return error_response(501, "NOT_IMPLEMENTED",
                        "interrogate: this worker has no model that describes pictures");
}

// The worker serves one model with fixed options.
Response set_options(ImageService& service, const Request& request) {
  check_served(service, "sd_model_checkpoint", parse_sdapi_options(request.body));
  return json_response(200, "{}");
}

Response progress(ImageService& service, const Request& request) {
  return json_response(200, sdapi_progress_json(service.progress(request.sender())));
}

Response task_progress(ImageService& service, const Request& request) {
  const SdapiTask task = parse_sdapi_task(request.body);
  return json_response(200, sdapi_task_json(service.task_progress(task.id), task.preview));
}

// Routes of AUTOMATIC1111's lists.
std::vector<SdapiName> names(const std::vector<engine::NamedChoice>& choices) {
  std::vector<SdapiName> out;
  for (const engine::NamedChoice& choice : choices) out.push_back({choice.name, choice.aliases});
  return out;
}

std::string samplers(const ImageService&) {
  return sdapi_samplers_json(names(engine::sampler_choices()));
}

std::string schedulers(const ImageService&) {
  return sdapi_schedulers_json(names(engine::schedule_choices()));
}

std::string models(const ImageService& service) {
  return sdapi_models_json(service.model_id());
}

std::string options(const ImageService& service) {
  return sdapi_options_json(service.model_id());
}

std::string upscalers(const ImageService& service) {
  return sdapi_upscalers_json(service.upscalers());
}

std::string embeddings(const ImageService& service) {
  SdapiEmbeddings out{.loaded = {}, .skipped = service.model().skipped_embeddings};
  for (const engine::WordInfo& entry : service.model().embeddings) {
    out.loaded.emplace_back(entry.word, entry.vectors);
  }
  return sdapi_embeddings_json(out);
}

std::string controls(const ImageService& service) {
  return controlnet_models_json(service.model().controls);
}

std::string control_types(const ImageService& service) {
  return controlnet_types_json(service.model().controls);
}

std::string memory(const ImageService& service) {
  const auto [total, free] = service.device_memory();
  return sdapi_memory_json(total, free);
}

template <std::string (*kFacts)(const ImageService&)>
Response show(ImageService& service, const Request&) {
  return json_response(200, kFacts(service));
}

// On a side thread, because it reads files.
Response loras(ImageService& service, const Request& request) {
  return service.beside(request.sender(), [&service] {
    std::vector<SdapiLora> loras;
    for (auto& [path, alias] : service.loras()) loras.push_back({path, alias});
    return json_response(200, sdapi_loras_json(loras));
  });
}

// The same for every worker.
Response fixed(ImageService&, const Request& request) {
  return json_response(200, sdapi_fixed_json(request.path));
}

Response nothing_to_do(ImageService&, const Request&) {
  return json_response(200, "{}");
}

constexpr ImageRoute kRoutes[] = {
    {"POST", "/sdapi/v1/txt2img", draw<false>, Body::json},
    {"POST", "/sdapi/v1/img2img", draw<true>, Body::json},
    {"POST", "/sdapi/v1/interrupt", hurry<engine::Hurry::request>},
    {"POST", "/sdapi/v1/skip", hurry<engine::Hurry::pictures>},
    {"POST", "/sdapi/v1/png-info", png_info, Body::json},
    {"POST", "/sdapi/v1/extra-single-image", enlarge<false>, Body::json},
    {"POST", "/sdapi/v1/extra-batch-images", enlarge<true>, Body::json},
    {"POST", "/sdapi/v1/interrogate", interrogate, Body::json},
    {"POST", "/sdapi/v1/options", set_options, Body::json},
    {"GET", "/sdapi/v1/options", show<options>},
    {"GET", "/sdapi/v1/progress", progress},
    {"POST", "/internal/progress", task_progress, Body::json},
    {"GET", "/sdapi/v1/samplers", show<samplers>},
    {"GET", "/sdapi/v1/schedulers", show<schedulers>},
    {"GET", "/sdapi/v1/sd-models", show<models>},
    {"GET", "/sdapi/v1/upscalers", show<upscalers>},
    {"GET", "/sdapi/v1/embeddings", show<embeddings>},
    {"GET", "/sdapi/v1/loras", loras},
    {"GET", "/sdapi/v1/memory", show<memory>},
    // The extension's: clients call these before they offer ControlNets.
    {"GET", "/controlnet/model_list", show<controls>},
    {"GET", "/controlnet/control_types", show<control_types>},
};

// The model stays loaded, and files are looked up when requests name them.
constexpr ImageRoute kNothing[] = {
    {"POST", "/sdapi/v1/refresh-checkpoints", nothing_to_do},
    {"POST", "/sdapi/v1/refresh-vae", nothing_to_do},
    {"POST", "/sdapi/v1/refresh-loras", nothing_to_do},
    {"POST", "/sdapi/v1/refresh-embeddings", nothing_to_do},
    {"POST", "/sdapi/v1/unload-checkpoint", nothing_to_do},
    {"POST", "/sdapi/v1/reload-checkpoint", nothing_to_do},
};

}  // namespace

std::span<const ImageRoute> a1111_routes() {
  static const std::vector<ImageRoute> routes = [] {
    std::vector<ImageRoute> out(std::begin(kRoutes), std::end(kRoutes));
    out.insert(out.end(), std::begin(kNothing), std::end(kNothing));
    for (const std::string_view path : sdapi_fixed_paths()) out.push_back({"GET", path, fixed});
    return out;
  }();
  return routes;
}

std::optional<Response> a1111_idle_answer(const Request& request) {
  std::string_view method = request.method;
  if (method == "HEAD") method = "GET";
  const auto routes = a1111_routes();
  const auto route = std::ranges::find_if(routes, [&](const ImageRoute& one) {
    return one.method == method && one.pattern == request.path;
  });
  if (route == routes.end()) return std::nullopt;
  if (route->handler == progress) return json_response(200, sdapi_progress_json({}));
  if (route->handler == fixed) return json_response(200, sdapi_fixed_json(request.path));
  constexpr std::array kWithoutWork = {hurry<engine::Hurry::request>,
                                       hurry<engine::Hurry::pictures>, nothing_to_do};
  if (std::ranges::count(kWithoutWork, route->handler) > 0) return json_response(200, "{}");
  return std::nullopt;
}

}  // namespace rbee::server
