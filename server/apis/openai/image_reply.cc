#include "server/apis/openai/image_reply.h"

#include <chrono>

#include "rbee/core/cat.h"
#include "server/apis/openai/image_response.h"
#include "server/wire/worker_contract.h"

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

}  // namespace

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

}  // namespace rbee::server
