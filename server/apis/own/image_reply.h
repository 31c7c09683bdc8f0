#pragma once
// Answers of the worker's own jobs for pictures.

#include <memory>
#include <string_view>
#include <vector>

#include "server/image/reply.h"

namespace rbee::server {

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

}  // namespace rbee::server
