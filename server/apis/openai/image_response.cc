#include "server/apis/openai/image_response.h"

#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "server/wire/json_text.h"

namespace rbee::server {

namespace {

using Json = nlohmann::ordered_json;

std::string data_url(const ImageResult& image) {
  return cat("data:image/", image.format, ";base64,", image.base64);
}

}  // namespace

std::string openai_images_json(const std::vector<ImageResult>& images, int64_t created,
                               bool as_url) {
  Json data = Json::array();
  for (const ImageResult& image : images) {
    Json entry = {{"seed", image.seed}};
    as_url ? entry["url"] = data_url(image) : entry["b64_json"] = image.base64;
    data.push_back(std::move(entry));
  }
  Json json = {{"created", created}, {"data", std::move(data)}};
  if (!images.empty()) {
    json["output_format"] = images.front().format;
    json["size"] = cat(images.front().width, "x", images.front().height);
  }
  return dump(json);
}

std::string openai_partial_json(const OpenAiPartial& partial) {
  return dump({{"type", cat(partial.operation, ".partial_image")},
               {"b64_json", partial.base64},
               {"partial_image_index", partial.index},
               {"created_at", partial.created},
               {"size", partial.size},
               {"background", "opaque"},
               {"quality", "auto"},
               {"output_format", "png"}});
}

std::string openai_completed_json(std::string_view operation, const ImageResult& image,
                                  int64_t created) {
  return dump({{"type", cat(operation, ".completed")},
               {"b64_json", image.base64},
               {"created_at", created},
               {"size", cat(image.width, "x", image.height)},
               {"seed", image.seed},
               {"background", "opaque"},
               {"quality", "auto"},
               {"output_format", image.format}});
}

}  // namespace rbee::server
