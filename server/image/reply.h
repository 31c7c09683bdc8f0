#pragma once
// How one job's events are told to its client. Calls come one at a time; end() or error() is last.

#include <memory>
#include <string>
#include <vector>

#include "server/contract/error_map.h"
#include "server/contract/image_responses.h"
#include "server/http/mailbox.h"

namespace rbee::server {

class ImageReply {
 public:
  virtual ~ImageReply() = default;
  virtual void started(const ImageStartedEvent&) {}
  virtual void progress(const ImageProgressEvent&) {}
  virtual void preview(const ImageProgressEvent&, std::string_view /*base64*/, int32_t /*index*/) {}
  virtual void image(const ImageResult&) {}
  virtual void end(const std::vector<ImageResult>& images, const ImageTimes& times) = 0;
  virtual void error(const WireError& error, std::string_view message) = 0;
  // Whether an interrupted request is answered with its pictures so far, rather than an error.
  virtual bool takes_unfinished() const { return false; }
};

// Named events and [DONE], for /v1/jobs. A step has a preview or progress, not both.
class ImageJobStream final : public ImageReply {
 public:
  explicit ImageJobStream(std::shared_ptr<EventQueue> queue) : queue_(std::move(queue)) {}
  void started(const ImageStartedEvent& event) override;
  void progress(const ImageProgressEvent& event) override;
  void preview(const ImageProgressEvent& progress, std::string_view base64, int32_t index) override;
  void end(const std::vector<ImageResult>& images, const ImageTimes& times) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<EventQueue> queue_;
};

// OpenAI's events: partial pictures, then each picture.
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
  std::string size_;  // of the pictures that come
  int32_t partials_ = 0;
};

// All pictures in one response of OpenAI's form.
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

// All pictures in one response of AUTOMATIC1111's form.
class SdapiImages final : public ImageReply {
 public:
  // request: what the answer repeats.
  SdapiImages(std::shared_ptr<DelayedResponse> response, std::string request, bool with_images)
      : response_(std::move(response)), request_(std::move(request)), with_images_(with_images) {}
  void end(const std::vector<ImageResult>& images, const ImageTimes& times) override;
  void error(const WireError& error, std::string_view message) override;
  bool takes_unfinished() const override { return true; }

 private:
  std::shared_ptr<DelayedResponse> response_;
  std::string request_;
  bool with_images_;
};

}  // namespace rbee::server
