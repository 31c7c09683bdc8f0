#include "server/image/upscale.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/resize.h"
#include "server/contract/error_map.h"
#include "server/contract/image_responses.h"
#include "server/worker/service.h"

namespace rbee::server {
namespace {

constexpr int32_t kMaxSide = 4096;

int32_t side(int32_t from, double factor) {
  const double wanted = from * factor;
  check(wanted <= kMaxSide, "upscaling_resize", std::lround(wanted), " pixels are more than ",
        kMaxSide);
  return std::max(static_cast<int32_t>(std::lround(wanted)), 1);
}

// The middle of a picture that is at least as large.
io::Pixels middle(const io::Pixels& from, int32_t width, int32_t height) {
  io::Pixels out{.width = width, .height = height, .channels = from.channels, .values = {}};
  const int32_t top = (from.height - height) / 2, left = (from.width - width) / 2;
  for (int32_t y = 0; y < height; ++y) {
    const auto row = from.values.begin() + (int64_t{y + top} * from.width + left) * from.channels;
    out.values.insert(out.values.end(), row, row + int64_t{width} * from.channels);
  }
  return out;
}

Response answer_to(const Upscaler::Work& work, const SdapiUpscale& wanted) {
  try {
    return json_response(200, sdapi_extra_image_json(work(wanted)));
  } catch (const Error& error) {
    const WireError wire = wire_error(error.code());
    return json_response(wire.status, error_json(wire.code, error.what()));
  } catch (const std::exception& error) {
    const WireError wire = wire_error(Code::internal);
    return json_response(wire.status, error_json(wire.code, error.what()));
  }
}

}  // namespace

std::string upscaled(const SdapiUpscale& wanted) {
  io::Pixels picture = io::decode_image(io::decode_base64(wanted.image, "image"), "image");
  if (wanted.upscaler != "None") {
    const bool nearest = wanted.upscaler == "Nearest";
    double factor = wanted.factor;
    if (wanted.to_size) {
      factor = std::max(static_cast<double>(wanted.width) / picture.width,
                        static_cast<double>(wanted.height) / picture.height);
    }
    picture = io::resized(picture, side(picture.width, factor), side(picture.height, factor),
                          nearest ? io::Resampler::nearest : io::Resampler::lanczos);
    if (wanted.to_size && wanted.crop) picture = middle(picture, wanted.width, wanted.height);
  }
  return io::encode_base64(io::encode_png(picture));
}

Upscaler::Upscaler(Work work) : work_(std::move(work)), thread_([this] { run(); }) {}

Upscaler::~Upscaler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<DelayedResponse> Upscaler::submit(SdapiUpscale wanted) {
  auto abandoned = std::make_shared<std::atomic<bool>>(false);
  auto response = std::make_shared<DelayedResponse>([abandoned] { *abandoned = true; });
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [](const Task& task) { return task.abandoned->load(); });
    if (waiting_.size() >= kMostWaiting) {
      throw Refused(Refused::Why::overloaded,
                    cat(kMostWaiting, " pictures wait to be enlarged already"));
    }
    waiting_.push_back({std::move(wanted), response, std::move(abandoned)});
  }
  changed_.notify_all();
  return response;
}

void Upscaler::run() {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!task.abandoned->load()) task.response->set(answer_to(work_, task.wanted));
  }
}

}  // namespace rbee::server
