#pragma once
// Image answers in OpenAI's form.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/image/reply.h"

namespace rbee::server {

// Events: partial pictures, then each picture.
class OpenAiImageStream final : public ImageReply {
 public:
  // operation: "image_generation" or "image_edit"
  OpenAiImageStream(std::shared_ptr<EventQueue> queue, std::string operation)
      : queue_(std::move(queue)), operation_(std::move(operation)) {}
  void started(const ImageStartedEvent& event) override;
  void preview(const ImageProgressEvent& progress, std::string_view base64, int32_t index) override;
  void image(const ImageResult& image) override;
  void end(const std::vector<ImageResult>& images, const ImageTimes& times) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<EventQueue> queue_;
  std::string operation_;
  std::string size_;  // of the finished pictures
  int32_t partials_ = 0;
};

// All pictures in one response.
class OpenAiImages final : public ImageReply {
 public:
  OpenAiImages(std::shared_ptr<DelayedResponse> response, bool as_url)
      : response_(std::move(response)), as_url_(as_url) {}
  void end(const std::vector<ImageResult>& images, const ImageTimes& times) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<DelayedResponse> response_;
  bool as_url_;
};

}  // namespace rbee::server
