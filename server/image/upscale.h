#pragma once
// Pictures at another size, by interpolation or by a network.

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/image.h"
#include "rbee/io/image/pixels.h"
#include "server/worker/side_work.h"

namespace rbee::server {

struct UpscaleOrder {
  std::string client;               // who asks; no field of a body
  std::vector<std::string> images;  // base64 of files
  std::string upscaler;             // "None", "Lanczos", "Nearest", or a network's name
  bool to_size = false;             // until it covers width and height; else by `factor`
  double factor = 2;
  int32_t width = 512;
  int32_t height = 512;
  bool crop = true;  // what is beyond width and height
};

// A picture through a network of this name.
using Enlarge = std::function<io::Pixels(const std::string& network, io::Pixels picture)>;

// Names of upscalers that need no network.
std::span<const std::string_view> plain_upscalers();

// The picture, of which `image` is the base64, as base64 of a PNG file, which keeps the settings
// that the sent file names, as "parameters", and says how it was enlarged, as "postprocessing".
// `enlarge` is asked for what is none of plain_upscalers(), until the picture is as large as wanted
// or three times. Throws invalid_argument for bytes that are no picture and for a result above 4096
// pixels a side, and what `enlarge` throws.
std::string upscaled(const std::string& image, const UpscaleOrder& wanted, const Enlarge& enlarge);

// Throws invalid_argument for pictures that become more than 32 Mi pixels in all, and as
// upscaled().
void check_sizes(const UpscaleOrder& wanted);

// Enlarges pictures beside the thread that serves connections, those of two clients at once, which
// take turns between tiles; the others' clients take turns for these two places.
class UpscaleQueue {
 public:
  // Of one picture, base64 as is the result.
  using Work = std::function<std::string(const std::string& image, const UpscaleOrder&,
                                         const engine::UpscaleHooks&)>;
  // An answer with the results, base64.
  using Form = std::function<Response(const std::vector<std::string>& made)>;
  static constexpr size_t kMostWaiting = 8;

  explicit UpscaleQueue(Work work) : work_(std::move(work)) {}

  // Answered with the form of what the work gives, or its Error, which of several pictures names
  // the first that fails. A picture whose client leaves is not made; one in work ends at its next
  // tile. Where kMostWaiting wait already, one is refused as SideWork::submit says.
  std::shared_ptr<DelayedResponse> submit(UpscaleOrder wanted, Form form);
  // Of a picture in work, the client's own before another one's; nothing: none is.
  std::optional<engine::TileProgress> progress(std::string_view client) const;
  // Ends the picture in work, of the same choice.
  void interrupt(std::string_view client);

 private:
  struct InWork {
    std::string client;
    std::shared_ptr<std::atomic<bool>> unwanted;
    engine::TileProgress tiles{};
  };

  std::vector<std::string> make(const UpscaleOrder& wanted,
                                const std::shared_ptr<std::atomic<bool>>& unwanted);
  // mutex_ is held; null: nothing is in work.
  const InWork* chosen(std::string_view client) const;

  const Work work_;
  mutable std::mutex mutex_;
  std::list<InWork> in_work_;  // the oldest first
  // Last: its threads use the others.
  SideWork side_work_{{.most_waiting = kMostWaiting, .threads = 2, .most_each = 1}};
};

}  // namespace rbee::server
