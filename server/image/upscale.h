#pragma once
// POST /sdapi/v1/extra-single-image: a picture at another size, without any model.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/contract/image_requests.h"
#include "server/http/mailbox.h"

namespace rbee::server {

// The picture as base64 of a PNG file. Throws invalid_argument for bytes that are no picture and
// for a result above 4096 pixels a side.
std::string upscaled(const SdapiUpscale& wanted);

// Enlarges pictures one after another on a thread of its own, so that those that serve connections
// go on serving. The destructor waits for the picture in work and drops those that wait.
class Upscaler {
 public:
  using Work = std::function<std::string(const SdapiUpscale&)>;
  static constexpr size_t kMostWaiting = 8;

  explicit Upscaler(Work work = upscaled);
  ~Upscaler();
  Upscaler(const Upscaler&) = delete;
  Upscaler& operator=(const Upscaler&) = delete;

  // Answered with what the work gives, or its Error. A picture whose client leaves while it waits
  // is not made. Throws Refused where kMostWaiting wait already.
  std::shared_ptr<DelayedResponse> submit(SdapiUpscale wanted);

 private:
  struct Task {
    SdapiUpscale wanted;
    std::shared_ptr<DelayedResponse> response;
    std::shared_ptr<const std::atomic<bool>> abandoned;
  };
  void run();

  const Work work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rbee::server
