#include "server/apis/a1111/reply.h"

#include "rbee/engine/api/image_parameters.h"
#include "server/apis/a1111/response.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

namespace {

Response failed(const WireError& error, std::string_view message) {
  return json_response(error.status, error_json(error.code, message));
}

// From the settings in the pictures' own texts.
SdapiInfo info_of(const std::vector<ImageResult>& images) {
  SdapiInfo out;
  for (const ImageResult& image : images) {
    const engine::ImageRequest made = engine::parse_parameters(image.parameters);
    out.sampler = made.sampler;
    if (made.steps != 0) out.steps = made.steps;
    out.guidance_scale = made.guidance_scale;
    out.subseed_strength = made.variation.strength;
    out.subseeds.push_back(made.variation.seed);
  }
  return out;
}

}  // namespace

void SdapiImages::end(const std::vector<ImageResult>& images, const ImageTimes&) {
  response_->set(
      json_response(200, sdapi_images_json(images, info_of(images), request_, with_images_)));
}

void SdapiImages::error(const WireError& error, std::string_view message) {
  response_->set(failed(error, message));
}

}  // namespace rbee::server
