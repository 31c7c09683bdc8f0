#include "server/apis/own/image_reply.h"

#include "server/apis/own/image_response.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

namespace {

constexpr std::string_view kDone = "[DONE]";

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

}  // namespace rbee::server
