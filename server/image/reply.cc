#include "server/image/reply.h"

#include <chrono>

#include "rbee/core/cat.h"
#include "rbee/engine/image_parameters.h"
#include "server/contract/responses.h"

namespace rbee::server {
namespace {

constexpr std::string_view kDone = "[DONE]";

int64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

Response failed(const WireError& error, std::string_view message) {
  return json_response(error.status, error_json(error.code, message));
}

// As the pictures' own texts say it.
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

void ImageJobStream::started(const ImageStartedEvent& event) {
  queue_->push_event("started", to_json(event));
}

void ImageJobStream::progress(const ImageProgressEvent& event) {
  queue_->push_event("progress", to_json(event));
}

void ImageJobStream::preview(const ImageProgressEvent& progress, std::string_view base64,
                             int32_t index) {
  queue_->push_event("preview", preview_json(progress, base64, index));
}

void ImageJobStream::end(const std::vector<ImageResult>& images, const ImageTimes& times) {
  queue_->push_event("complete", complete_json(images, times));
  queue_->push_data(kDone);
  queue_->close();
}

void ImageJobStream::error(const WireError& error, std::string_view message) {
  queue_->push_event("error", error_event_json(error, message));
  queue_->push_data(kDone);
  queue_->close();
}

void OpenAiImageStream::started(const ImageStartedEvent& event) {
  size_ = cat(event.width, "x", event.height);
}

void OpenAiImageStream::preview(const ImageProgressEvent&, std::string_view base64, int32_t) {
  queue_->push_event(cat(operation_, ".partial_image"),
                     openai_partial_json({.operation = operation_,
                                          .base64 = base64,
                                          .size = size_,
                                          .index = partials_++,
                                          .created = now()}));
}

void OpenAiImageStream::image(const ImageResult& image) {
  queue_->push_event(cat(operation_, ".completed"),
                     openai_completed_json(operation_, image, now()));
}

void OpenAiImageStream::end(const std::vector<ImageResult>&, const ImageTimes&) {
  queue_->push_data(kDone);
  queue_->close();
}

void OpenAiImageStream::error(const WireError& error, std::string_view message) {
  queue_->push_event("error", error_json(error.code, message));
  queue_->push_data(kDone);
  queue_->close();
}

void OpenAiImages::end(const std::vector<ImageResult>& images, const ImageTimes&) {
  response_->set(json_response(200, openai_images_json(images, now(), as_url_)));
}

void OpenAiImages::error(const WireError& error, std::string_view message) {
  response_->set(failed(error, message));
}

void SdapiImages::end(const std::vector<ImageResult>& images, const ImageTimes&) {
  response_->set(
      json_response(200, sdapi_images_json(images, info_of(images), request_, with_images_)));
}

void SdapiImages::error(const WireError& error, std::string_view message) {
  response_->set(failed(error, message));
}

}  // namespace rbee::server
