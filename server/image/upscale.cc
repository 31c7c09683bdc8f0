#include "server/image/upscale.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/pixels.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/resize.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

constexpr int32_t kMaxSide = 4096;
constexpr int64_t kMostPixels = int64_t{32} << 20;  // of all results, which are held at once

int32_t side(int32_t from, double factor) {
  const long wanted = std::lround(from * factor);
  check(wanted <= kMaxSide, "upscaling_resize", wanted, " pixels are more than ", kMaxSide);
  return std::max(static_cast<int32_t>(wanted), 1);
}

std::pair<int32_t, int32_t> size_of(const UpscaleOrder& wanted, int32_t width, int32_t height) {
  if (wanted.upscaler == "None") return {width, height};
  double factor = wanted.factor;
  if (wanted.to_size) {
    factor = std::max(static_cast<double>(wanted.width) / width,
                      static_cast<double>(wanted.height) / height);
  }
  return {side(width, factor), side(height, factor)};
}

// What AUTOMATIC1111 writes of it into the file.
std::string note(const UpscaleOrder& wanted) {
  if (wanted.upscaler == "None") return {};
  const std::string size = cat(wanted.width, "x", wanted.height);
  std::string out = wanted.to_size
                        ? cat("Postprocess upscale to: ", size)
                        : cat("Postprocess upscale by: ", static_cast<float>(wanted.factor));
  if (wanted.to_size && wanted.crop) out += cat(", Postprocess crop to: ", size);
  const bool plain = wanted.upscaler.find_first_of(",:\n") == std::string::npos;
  return cat(out, ", Postprocess upscaler: ", plain ? wanted.upscaler : dump(wanted.upscaler));
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

// As AUTOMATIC1111, which lets a network enlarge what it has enlarged.
io::Pixels through_network(io::Pixels picture, const std::string& network, int32_t width,
                           int32_t height, const Enlarge& enlarge) {
  constexpr int kMostTimes = 3;
  constexpr int32_t kMostRead = 2048;
  check(std::max(picture.width, picture.height) <= kMostRead, "image", picture.width, " x ",
        picture.height, " pixels are more than the ", kMostRead, " a side that networks are for");
  for (int i = 0; i < kMostTimes; ++i) {
    const int32_t before = picture.width;
    picture = enlarge(network, std::move(picture));
    const bool done = picture.width >= width && picture.height >= height;
    const int32_t factor = picture.width / before, longer = std::max(picture.width, picture.height);
    const bool more =
        factor > 1 && longer <= kMostRead && longer * factor <= engine::kMostEnlargedSide;
    if (done || !more) break;
  }
  return picture;
}

}  // namespace

std::span<const std::string_view> plain_upscalers() {
  static constexpr std::string_view kNames[] = {"None", "Lanczos", "Nearest"};
  return kNames;
}

std::string upscaled(const std::string& image, const UpscaleOrder& wanted, const Enlarge& enlarge,
                     io::LargePictures& large) {
  const std::string file = io::decode_base64(image, "image");
  const io::ImageHeader header = io::read_image_header(file, "image");
  const auto [most_wide, most_high] = size_of(wanted, header.width, header.height);
  const auto place =
      large.enter(std::max(int64_t{header.width} * header.height, int64_t{most_wide} * most_high));
  io::Pixels picture = io::decode_image(file, "image");
  if (wanted.upscaler != "None") {
    const auto [width, height] = size_of(wanted, picture.width, picture.height);
    if (std::ranges::count(plain_upscalers(), wanted.upscaler) == 0) {
      picture = through_network(std::move(picture), wanted.upscaler, width, height, enlarge);
    }
    const bool nearest = wanted.upscaler == "Nearest";
    picture = io::resized(picture, width, height,
                          nearest ? io::Resampler::nearest : io::Resampler::lanczos);
    if (wanted.to_size && wanted.crop) picture = middle(picture, wanted.width, wanted.height);
  }
  std::vector<io::PngText> texts;
  if (const auto settings = io::image_parameters(file)) texts.push_back({"parameters", *settings});
  if (std::string text = note(wanted); !text.empty()) {
    texts.push_back({"postprocessing", std::move(text)});
  }
  return io::encode_png(picture, texts);
}

void check_sizes(const UpscaleOrder& wanted) {
  int64_t pixels = 0;
  for (const std::string& image : wanted.images) {
    const io::ImageHeader header =
        io::read_image_header(io::decode_base64(image, "image"), "image");
    const auto [width, height] = size_of(wanted, header.width, header.height);
    pixels += int64_t{width} * height;
  }
  check(pixels <= kMostPixels, "imageList", "the pictures become ", pixels,
        " pixels, more than the ", kMostPixels, " of a request");
}

std::shared_ptr<DelayedResponse> UpscaleQueue::submit(UpscaleOrder wanted, Form form) {
  auto unwanted = std::make_shared<std::atomic<bool>>(false);
  std::string client = wanted.client;
  return side_work_.submit({.client = std::move(client),
                            .work = [this, wanted = std::move(wanted), form = std::move(form),
                                     unwanted] { return form(make(wanted, unwanted)); },
                            .on_leave = [unwanted] { *unwanted = true; }});
}

std::vector<std::string> UpscaleQueue::make(const UpscaleOrder& wanted,
                                            const std::shared_ptr<std::atomic<bool>>& unwanted) {
  const auto here = [&] {
    const std::lock_guard lock(mutex_);
    return in_work_.insert(in_work_.end(), {.client = wanted.client, .unwanted = unwanted});
  }();
  struct Leaving {
    UpscaleQueue& queue;
    std::list<InWork>::iterator here;
    ~Leaving() {
      const std::lock_guard lock(queue.mutex_);
      queue.in_work_.erase(here);
    }
  };
  const Leaving leaving{*this, here};
  engine::UpscaleHooks hooks;
  hooks.client = wanted.client;
  hooks.going_on = [unwanted] { return !unwanted->load(); };
  hooks.tile = [this, here](const engine::TileProgress& tiles) {
    const std::lock_guard lock(mutex_);
    here->tiles = tiles;
  };
  if (wanted.images.size() > 1) check_sizes(wanted);
  std::vector<std::string> made;
  for (const std::string& image : wanted.images) made.push_back(work_(image, wanted, hooks));
  return made;
}

const UpscaleQueue::InWork* UpscaleQueue::chosen(std::string_view client) const {
  if (in_work_.empty()) return nullptr;
  const auto own = std::ranges::find(in_work_, client, &InWork::client);
  return own == in_work_.end() ? &in_work_.front() : &*own;
}

std::optional<engine::TileProgress> UpscaleQueue::progress(std::string_view client) const {
  const std::lock_guard lock(mutex_);
  const InWork* picture = chosen(client);
  return picture == nullptr ? std::nullopt : std::optional(picture->tiles);
}

void UpscaleQueue::interrupt(std::string_view client) {
  const std::lock_guard lock(mutex_);
  if (const InWork* picture = chosen(client)) *picture->unwanted = true;
}

}  // namespace rbee::server
