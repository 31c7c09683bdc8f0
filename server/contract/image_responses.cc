#include "server/contract/image_responses.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Microseconds are as far as a clock reading means anything.
double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

double percent(const ImageProgressEvent& event) {
  return event.total > 0 ? std::round(event.step * 1000.0 / event.total) / 10 : 0;
}

Json progress_fields(const char* type, const ImageProgressEvent& event) {
  return {{"type", type},
          {"step", event.step},
          {"total", event.total},
          {"percent", percent(event)},
          {"elapsed_seconds", rounded(event.seconds)},
          {"steps_per_second", rounded(event.steps_per_second)},
          {"images_per_second", rounded(event.images_per_second)}};
}

std::string data_url(std::string_view base64) {
  return cat("data:image/png;base64,", base64);
}

Json names_of(const std::vector<SdapiName>& names, const char* label) {
  Json list = Json::array();
  for (const SdapiName& entry : names) {
    Json item = {{"name", entry.name}, {"aliases", entry.aliases}};
    if (label != nullptr) item[label] = entry.name;
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

std::string to_json(const ImageHealth& health) {
  return dump({{"status", health.healthy ? "healthy" : "unhealthy"},
               {"model", health.model},
               {"resident", health.healthy},
               {"architecture", health.architecture},
               {"dtype", health.dtype},
               {"device", health.device},
               {"default_width", health.default_width},
               {"default_height", health.default_height},
               {"default_steps", health.default_steps},
               {"inpainting_model", health.inpainting},
               {"parameters", health.parameters},
               {"vram_bytes_used", health.memory_bytes},
               {"uptime_seconds", rounded(health.uptime_seconds)}});
}

std::string to_json(const ImageStartedEvent& event) {
  return dump({{"type", "started"},
               {"job_id", event.job_id},
               {"model", event.model},
               {"started_at", event.started_at},
               {"seed", event.seed},
               {"width", event.width},
               {"height", event.height},
               {"steps", event.steps},
               {"count", event.count},
               {"sampler", event.sampler},
               {"schedule", event.schedule},
               {"guidance_scale", event.guidance_scale}});
}

std::string to_json(const ImageProgressEvent& event) {
  return dump(progress_fields("progress", event));
}

std::string preview_json(const ImageProgressEvent& progress, std::string_view base64,
                         int32_t index) {
  Json json = progress_fields("preview", progress);
  json["index"] = index;
  json["image"] = base64;
  json["format"] = "png";
  return dump(json);
}

std::string complete_json(const std::vector<ImageResult>& images, const ImageTimes& times) {
  Json json = {{"type", "complete"}};
  if (!images.empty()) {
    json["image"] = images.front().base64;
    json["format"] = "png";
    json["seed"] = images.front().seed;
    json["parameters"] = images.front().parameters;
  }
  Json list = Json::array();
  for (const ImageResult& image : images) {
    // The first one is above.
    Json entry = {{"index", image.index},
                  {"seed", image.seed},
                  {"width", image.width},
                  {"height", image.height}};
    if (image.index != 0) entry["image"] = image.base64;
    list.push_back(std::move(entry));
  }
  json["images"] = std::move(list);
  json["text_ms"] = rounded(times.text_ms);
  json["sample_ms"] = rounded(times.sample_ms);
  json["decode_ms"] = rounded(times.decode_ms);
  json["duration_ms"] = rounded(times.total_ms);
  return dump(json);
}

std::string openai_images_json(const std::vector<ImageResult>& images, int64_t created,
                               bool as_url) {
  Json data = Json::array();
  for (const ImageResult& image : images) {
    Json entry = {{"seed", image.seed}};
    as_url ? entry["url"] = data_url(image.base64) : entry["b64_json"] = image.base64;
    data.push_back(std::move(entry));
  }
  Json json = {{"created", created}, {"data", std::move(data)}, {"output_format", "png"}};
  if (!images.empty()) json["size"] = cat(images.front().width, "x", images.front().height);
  return dump(json);
}

std::string openai_partial_json(std::string_view base64, int32_t index, int64_t created) {
  return dump({{"type", "image_generation.partial_image"},
               {"b64_json", base64},
               {"partial_image_index", index},
               {"created_at", created},
               {"output_format", "png"}});
}

std::string openai_completed_json(const ImageResult& image, int64_t created) {
  return dump({{"type", "image_generation.completed"},
               {"b64_json", image.base64},
               {"created_at", created},
               {"size", cat(image.width, "x", image.height)},
               {"seed", image.seed},
               {"output_format", "png"}});
}

std::string openai_models_json(std::string_view model, int64_t created) {
  return dump(
      {{"object", "list"},
       {"data",
        Json::array(
            {{{"id", model}, {"object", "model"}, {"created", created}, {"owned_by", "rbee"}}})}});
}

std::string sdapi_images_json(const std::vector<ImageResult>& images, std::string_view request,
                              bool with_images) {
  Json pictures = Json::array(), seeds = Json::array(), texts = Json::array();
  for (const ImageResult& image : images) {
    if (with_images) pictures.push_back(image.base64);
    seeds.push_back(image.seed);
    texts.push_back(image.parameters);
  }
  Json info = {{"all_seeds", seeds}, {"infotexts", texts}};
  if (!images.empty()) {
    info["seed"] = images.front().seed;
    info["width"] = images.front().width;
    info["height"] = images.front().height;
  }
  const Json parameters = Json::parse(request, nullptr, false);
  return dump({{"images", std::move(pictures)},
               {"parameters", parameters.is_discarded() ? Json::object() : parameters},
               {"info", dump(info)}});
}

std::string sdapi_progress_json(const SdapiProgress& progress) {
  const ImageProgressEvent& at = progress.progress;
  const double share = at.total > 0 ? static_cast<double>(at.step) / at.total : 0;
  const double left = share > 0 ? at.seconds * (1 - share) / share : 0;
  return dump({{"progress", progress.busy ? rounded(share) : 0},
               {"eta_relative", progress.busy ? rounded(left) : 0},
               {"state",
                {{"skipped", false},
                 {"interrupted", false},
                 {"job", progress.job},
                 {"job_count", progress.jobs},
                 {"job_no", 0},
                 {"sampling_step", at.step},
                 {"sampling_steps", at.total}}},
               {"current_image", progress.preview.empty() ? Json() : Json(progress.preview)},
               {"textinfo", nullptr}});
}

std::string sdapi_samplers_json(const std::vector<SdapiName>& names) {
  Json list = names_of(names, nullptr);
  for (Json& entry : list) entry["options"] = Json::object();
  return dump(list);
}

std::string sdapi_schedulers_json(const std::vector<SdapiName>& names) {
  return dump(names_of(names, "label"));
}

std::string sdapi_models_json(std::string_view model) {
  return dump(Json::array({{{"title", model},
                            {"model_name", model},
                            {"hash", nullptr},
                            {"sha256", nullptr},
                            {"filename", model},
                            {"config", nullptr}}}));
}

std::string sdapi_options_json(std::string_view model) {
  return dump({{"sd_model_checkpoint", model},
               {"sd_vae", "Automatic"},
               {"CLIP_stop_at_last_layers", 1},
               {"samples_format", "png"}});
}

std::string sdapi_upscalers_json() {
  return dump(Json::array({{{"name", "Latent"},
                            {"model_name", nullptr},
                            {"model_path", nullptr},
                            {"model_url", nullptr},
                            {"scale", 2}}}));
}

std::string controlnet_models_json(const std::vector<std::string>& names) {
  return dump({{"model_list", names}});
}

std::string controlnet_modules_json() {
  return dump({{"module_list", Json::array({"none"})}});
}

}  // namespace rbee::server
