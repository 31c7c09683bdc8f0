#include "server/apis/own/image_response.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "server/image/picture_json.h"
#include "server/wire/json_text.h"

namespace rbee::server {

namespace {

using Json = nlohmann::ordered_json;

double percent(const ImageProgressEvent& event) {
  return event.total > 0 ? std::round(event.step * 1000.0 / event.total) / 10 : 0;
}

Json progress_fields(const char* type, const ImageProgressEvent& event) {
  Json json = {{"type", type},
               {"step", event.step},
               {"total", event.total},
               {"percent", percent(event)},
               {"elapsed_seconds", rounded(event.seconds)},
               {"steps_per_second", rounded(event.steps_per_second)},
               {"images_per_second", rounded(event.images_per_second)}};
  if (event.tiles > 0) {
    json["tile"] = event.tile;
    json["tiles"] = event.tiles;
  }
  return json;
}

}  // namespace

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
               {"guidance_scale", decimal(event.guidance_scale)}});
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
  std::vector<PictureText> pictures;
  if (!images.empty()) {
    json["image"] = picture_here();
    pictures.push_back({images.front().file});
    json["format"] = images.front().format;
    json["seed"] = images.front().seed;
    json["parameters"] = images.front().parameters;
  }
  Json list = Json::array();
  for (const ImageResult& image : images) {
    list.push_back({{"index", image.index},
                    {"seed", image.seed},
                    {"width", image.width},
                    {"height", image.height},
                    {"image", picture_here()}});
    pictures.push_back({image.file});
  }
  json["images"] = std::move(list);
  json["text_ms"] = rounded(times.text_ms);
  json["sample_ms"] = rounded(times.sample_ms);
  json["decode_ms"] = rounded(times.decode_ms);
  json["duration_ms"] = rounded(times.total_ms);
  return dump(json, pictures);
}

}  // namespace rbee::server
