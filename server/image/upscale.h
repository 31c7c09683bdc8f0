#pragma once
// POST /sdapi/v1/extra-single-image and extra-batch-images: pictures at another size, by
// interpolation or by a network.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rbee/engine/image_api.h"
#include "rbee/io/image/pixels.h"
#include "server/contract/image_requests.h"
#include "server/worker/side_work.h"

namespace rbee::server {

// A picture through a network of this name.
using Enlarge = std::function<io::Pixels(const std::string& network, io::Pixels picture)>;

// Names of /sdapi/v1/upscalers that need no network.
std::span<const std::string_view> plain_upscalers();

// The picture, of which `image` is the base64, as base64 of a PNG file, which keeps the settings
// that the sent file names, as "parameters", and says how it was enlarged, as "postprocessing".
// `enlarge` is asked for what is none of plain_upscalers(), until the picture is as large as wanted
// or three times. Throws invalid_argument for bytes that are no picture and for a result above 4096
// pixels a side, and what `enlarge` throws.
std::string upscaled(const std::string& image, const SdapiUpscale& wanted, const Enlarge& enlarge);

// Throws invalid_argument for pictures that become more than 32 Mi pixels in all, and as
// upscaled().
void check_sizes(const SdapiUpscale& wanted);

// Enlarges pictures one after another, beside the thread that serves connections.
class Upscaler {
 public:
  // Of one picture, base64 as is the result.
  using Work = std::function<std::string(const std::string& image, const SdapiUpscale&,
                                         const engine::UpscaleHooks&)>;
  static constexpr size_t kMostWaiting = 8;

  explicit Upscaler(Work work) : work_(std::move(work)) {}

  // Answered with what the work gives, or its Error, which of several pictures names the first that
  // fails. A picture whose client leaves is not made; one
  // in work ends at its next tile. Throws Refused where kMostWaiting wait already.
  std::shared_ptr<DelayedResponse> submit(SdapiUpscale wanted);
  // Of the picture in work; nothing: none is.
  std::optional<engine::TileProgress> progress() const;
  // Ends the picture in work.
  void interrupt();

 private:
  Response make(const SdapiUpscale& wanted, const std::shared_ptr<std::atomic<bool>>& unwanted);

  void set_current(std::shared_ptr<std::atomic<bool>> unwanted);

  const Work work_;
  mutable std::mutex mutex_;
  std::shared_ptr<std::atomic<bool>> unwanted_;  // the picture in work; null: none is
  engine::TileProgress tiles_;                   // of it
  SideWork side_work_{kMostWaiting};             // last: its thread uses the others
};

}  // namespace rbee::server
