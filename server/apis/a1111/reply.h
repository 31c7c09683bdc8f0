#pragma once
// Image answers in AUTOMATIC1111's form.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/image/reply.h"

namespace rbee::server {

// All pictures in one response.
class SdapiImages final : public ImageReply {
 public:
  // request: the answer repeats it.
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
