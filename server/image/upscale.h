#pragma once
// POST /sdapi/v1/extra-single-image: a picture at another size, without any model.

#include <functional>
#include <memory>
#include <string>

#include "server/contract/image_requests.h"
#include "server/worker/side_work.h"

namespace rbee::server {

// The picture as base64 of a PNG file. Throws invalid_argument for bytes that are no picture and
// for a result above 4096 pixels a side.
std::string upscaled(const SdapiUpscale& wanted);

// Enlarges pictures one after another, beside the thread that serves connections.
class Upscaler {
 public:
  using Work = std::function<std::string(const SdapiUpscale&)>;
  static constexpr size_t kMostWaiting = 8;

  explicit Upscaler(Work work = upscaled) : work_(std::move(work)) {}

  // Answered with what the work gives, or its Error. A picture whose client leaves while it waits
  // is not made. Throws Refused where kMostWaiting wait already.
  std::shared_ptr<DelayedResponse> submit(SdapiUpscale wanted);

 private:
  const Work work_;
  SideWork side_work_{kMostWaiting};  // last: its thread uses work_
};

}  // namespace rbee::server
