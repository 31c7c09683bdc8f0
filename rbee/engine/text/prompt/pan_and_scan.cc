#include "rbee/engine/text/prompt/pan_and_scan.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/io/json_config.h"

namespace rbee::engine {
namespace {

PanAndScan settings_of(const io::JsonConfig& settings) {
  constexpr int64_t kSides = 1 << 14, kCrops = 64;
  const auto whole = [&](const char* field, int32_t fallback, int64_t highest) {
    return static_cast<int32_t>(settings.integer_or(field, fallback, {1, highest}));
  };
  constexpr const char* kRatio = "pan_and_scan_min_ratio_to_activate";
  PanAndScan out;
  out.on = settings.flag_or("do_pan_and_scan", out.on);
  out.min_crop = whole("pan_and_scan_min_crop_size", out.min_crop, kSides);
  out.max_crops = whole("pan_and_scan_max_num_crops", out.max_crops, kCrops);
  out.min_ratio = settings.number_or(kRatio, out.min_ratio, {1, kSides});
  return out;
}

io::Pixels cut(const io::Pixels& picture, int32_t left, int32_t top, int32_t width,
               int32_t height) {
  io::Pixels out{.width = width, .height = height, .channels = picture.channels, .values = {}};
  const int64_t channels = picture.channels;
  out.values.reserve(static_cast<size_t>(int64_t{width} * height * channels));
  for (int64_t row = top; row < top + height; ++row) {
    const auto from = picture.values.begin() + (row * picture.width + left) * channels;
    out.values.insert(out.values.end(), from, from + width * channels);
  }
  return out;
}

int32_t count_parts(int32_t longer, int32_t shorter, const PanAndScan& settings) {
  const double ratio = static_cast<double>(longer) / shorter;
  if (ratio < settings.min_ratio) return 0;
  const auto wanted = static_cast<int32_t>(std::floor(ratio + 0.5));
  const int32_t count = std::max(2, std::min(longer / settings.min_crop, wanted));
  return std::min(settings.max_crops, count);
}

}  // namespace

PanAndScan read_pan_and_scan(const io::Checkpoint& checkpoint) {
  for (const std::string file : {"processor_config.json", "preprocessor_config.json"}) {
    const auto text = checkpoint.text_file(file);
    if (!text) continue;
    const io::JsonConfig config(*text, file);
    constexpr const char* kInner = "image_processor";
    const bool nested = config.has(kInner);
    if (nested || file.starts_with("pre")) {
      return settings_of(nested ? config.section(kInner) : config);
    }
  }
  return {};
}

std::vector<io::Pixels> parts_of(const io::Pixels& picture, const PanAndScan& settings) {
  if (!settings.on) return {};
  const bool wide = picture.width >= picture.height;
  const int32_t longer = wide ? picture.width : picture.height;
  const int32_t shorter = wide ? picture.height : picture.width;
  const int32_t count = count_parts(longer, shorter, settings);
  if (count == 0) return {};
  const int32_t length = (longer + count - 1) / count;
  if (std::min(length, shorter) < settings.min_crop) return {};
  std::vector<io::Pixels> parts;
  for (int32_t at = 0; at < longer; at += length) {
    const int32_t end = std::min(at + length, longer);
    parts.push_back(wide ? cut(picture, at, 0, end - at, shorter)
                         : cut(picture, 0, at, shorter, end - at));
  }
  return parts;
}

}  // namespace rbee::engine
