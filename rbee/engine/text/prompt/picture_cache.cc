#include "rbee/engine/text/prompt/picture_cache.h"

#include <algorithm>
#include <utility>

namespace rbee::engine {
namespace {

int64_t bytes_of(const SeenPicture& picture) {
  return picture.rows.bytes() + std::ssize(picture.pixels->values);
}

Tensor as_input(const io::Pixels& pixels, int64_t side, Device& device) {
  RB_ASSERT(pixels.width == side && pixels.height == side && pixels.channels == 3);
  std::vector<float> values(pixels.values.size());
  std::ranges::transform(pixels.values, values.begin(),
                         [](uint8_t value) { return static_cast<float>(value) / 127.5f - 1.0f; });
  return from_host(std::span<const float>(values), Shape{side, side, 3}, device);
}

}  // namespace

std::shared_ptr<SeenPicture> PictureCache::find(const std::shared_ptr<const io::Pixels>& pixels) {
  std::erase_if(known_, [](const auto& each) { return each.expired(); });
  for (const std::weak_ptr<SeenPicture>& each : known_) {
    std::shared_ptr<SeenPicture> known = each.lock();
    if (known->pixels->values != pixels->values) continue;
    const auto kept = std::ranges::find(kept_, known);
    if (kept != kept_.end()) kept_.splice(kept_.end(), kept_, kept);
    return known;
  }
  RB_ASSERT(keys_ < INT32_MAX);
  auto out = std::make_shared<SeenPicture>();
  out->pixels = pixels;
  out->key = -++keys_;
  known_.push_back(out);
  return out;
}

void PictureCache::encode(const std::shared_ptr<SeenPicture>& picture, double multiplications) {
  RB_ASSERT(!picture->seen());
  const int64_t stages = encoder_.stages();
  const double wanted = multiplications / encoder_.multiplications() * static_cast<double>(stages);
  const int64_t left = stages - picture->stages;
  const auto count = wanted < static_cast<double>(left)
                         ? std::max<int64_t>(static_cast<int64_t>(wanted), 1)
                         : left;
  Tensor x =
      picture->stages > 0 ? picture->states : as_input(*picture->pixels, encoder_.side(), device_);
  for (int64_t i = 0; i < count; ++i) x = encoder_.stage(picture->stages + i, x);
  picture->stages += count;
  if (count < left) {
    picture->states = std::move(x);
    return;
  }
  picture->states = {};
  picture->rows = std::move(x);
  ++encoded_;
  keep(picture);
}

void PictureCache::keep(std::shared_ptr<SeenPicture> picture) {
  kept_bytes_ += bytes_of(*picture);
  kept_.push_back(std::move(picture));
  while (kept_bytes_ > most_bytes_) {
    kept_bytes_ -= bytes_of(*kept_.front());
    kept_.pop_front();
  }
}

}  // namespace rbee::engine
