#include "rbee/engine/picture_cache.h"

#include <algorithm>

namespace rbee::engine {

std::shared_ptr<const SeenPicture> PictureCache::see(
    const std::shared_ptr<const io::Pixels>& pixels) {
  const auto known = std::ranges::find_if(
      seen_, [&](const auto& each) { return each->pixels->values == pixels->values; });
  if (known != seen_.end()) {
    seen_.splice(seen_.end(), seen_, known);
    return seen_.back();
  }
  const int64_t side = encoder_.side();
  RB_ASSERT(pixels->width == side && pixels->height == side && pixels->channels == 3);
  RB_ASSERT(encoded_ < INT32_MAX);
  std::vector<float> values(pixels->values.size());
  std::ranges::transform(pixels->values, values.begin(),
                         [](uint8_t value) { return static_cast<float>(value) / 127.5f - 1.0f; });
  const Tensor picture = from_host(std::span<const float>(values), Shape{side, side, 3}, device_);
  auto seen = std::make_shared<SeenPicture>();
  seen->rows = encoder_(picture);
  seen->pixels = pixels;
  seen->key = -static_cast<int32_t>(++encoded_);
  if (seen_.size() >= most_) seen_.pop_front();
  seen_.push_back(seen);
  return seen;
}

}  // namespace rbee::engine
