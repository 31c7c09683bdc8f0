#pragma once
// Enlarges pictures, by interpolation or by a network.

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
#include "rbee/io/image/large_pictures.h"
#include "rbee/io/image/pixels.h"
#include "server/worker/side_work.h"

namespace rbee::server {

struct UpscaleOrder {
  std::string client;               // the sender; no field of a body
  std::vector<std::string> images;  // base64 of files
  std::string upscaler;             // "None", "Lanczos", "Nearest", or a network's name
  bool to_size = false;             // enlarge until it covers width and height; else by `factor`
  double factor = 2;
  int32_t width = 512;
  int32_t height = 512;
  bool crop = true;  // cut off what is beyond width and height
};

// Enlarges a picture by the network of this name.
using Enlarge = std::function<io::Pixels(const std::string& network, io::Pixels picture)>;

// Names of upscalers that need no network.
std::span<const std::string_view> plain_upscalers();

// Enlarges the picture in the base64 `image` and returns a PNG file. The file keeps the settings
// of the sent file as "parameters", and describes the enlargement as "postprocessing".
// Names outside plain_upscalers() go to `enlarge`, until the picture is large enough, at most three
// times. Waits for its place among `large`. Throws invalid_argument for bytes that are no picture
// and for a result above 4096 pixels a side, cancelled as check_cancelled(), and what `enlarge`
// throws.
std::string upscaled(const std::string& image, const UpscaleOrder& wanted, const Enlarge& enlarge,
                     io::LargePictures& large);

// Throws invalid_argument if the results have more than 32 Mi pixels in all, and as upscaled().
void check_sizes(const UpscaleOrder& wanted);

// Enlarges pictures on threads of its own, for two clients at once. These two take turns between
// tiles; the other clients wait for one of the two places in turns.
class UpscaleQueue {
 public:
  // Enlarges one picture: base64 becomes a PNG file.
  using Work = std::function<std::string(const std::string& image, const UpscaleOrder&,
                                         const engine::UpscaleHooks&)>;
  // Makes the answer from the results, PNG files.
  using Form = std::function<Response(const std::vector<std::string>& made)>;
  static constexpr size_t kMostWaiting = 8;

  explicit UpscaleQueue(Work work) : work_(std::move(work)) {}

  // Answers with form(results), or with the Error of the first picture that fails. If the client
  // leaves, waiting pictures are dropped and a running one ends at its next tile. If kMostWaiting
  // wait already, one is refused as in SideWork::submit.
  std::shared_ptr<DelayedResponse> submit(UpscaleOrder wanted, Form form);
  // Of a picture in work, the client's own first; nothing: none is.
  std::optional<engine::TileProgress> progress(std::string_view client) const;
  // Ends the picture in work, chosen the same way.
  void interrupt(std::string_view client);

 private:
  struct InWork {
    std::string client;
    std::shared_ptr<std::atomic<bool>> unwanted;
    engine::TileProgress tiles{};
  };

  std::vector<std::string> make(const UpscaleOrder& wanted,
                                const std::shared_ptr<std::atomic<bool>>& unwanted);
  // mutex_ must be held; null: nothing is in work.
  const InWork* chosen(std::string_view client) const;

  const Work work_;
  mutable std::mutex mutex_;
  std::list<InWork> in_work_;  // oldest first
  // Must be last: its threads use the other members.
  SideWork side_work_{{.most_waiting = kMostWaiting, .threads = 2, .most_each = 1}};
};

}  // namespace rbee::server
