#include "server/apis/openai/image_response.h"

#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "server/image/picture_json.h"
#include "server/wire/json_text.h"

namespace rbee::server {

namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string openai_images_json(const std::vector<ImageResult>& images, int64_t created,
                               bool as_url) {
  Json data = Json::array();
  std::vector<PictureText> pictures;
  const std::string head =
      as_url && !images.empty() ? cat("data:image/", images.front().format, ";base64,") : "";
  for (const ImageResult& image : images) {
    Json entry = {{"seed", image.seed}};
    entry[as_url ? "url" : "b64_json"] = picture_here();
    pictures.push_back({image.file, head});
    data.push_back(std::move(entry));
  }
  Json json = {{"created", created}, {"data", std::move(data)}};
  if (!images.empty()) {
    json["output_format"] = images.front().format;
    json["size"] = cat(images.front().width, "x", images.front().height);
  }
  return dump(json, pictures);
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
  const PictureText picture{image.file};
  return dump({{"type", cat(operation, ".completed")},
               {"b64_json", picture_here()},
               {"created_at", created},
               {"size", cat(image.width, "x", image.height)},
               {"seed", image.seed},
               {"background", "opaque"},
               {"quality", "auto"},
               {"output_format", image.format}},
              {&picture, 1});
}

}  // namespace rbee::server
