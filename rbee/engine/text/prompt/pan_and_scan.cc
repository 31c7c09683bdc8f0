#include "rbee/engine/text/prompt/pan_and_scan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using nlohmann::json;

double number(const json& settings, const char* key, double fallback, double highest,
              const std::string& file) {
  const auto found = settings.find(key);
  if (found == settings.end() || found->is_null()) return fallback;
  check(found->is_number() && *found >= 1 && *found <= highest, file, key, " is ", found->dump(),
        ", wanted from 1 to ", highest);
  return found->get<double>();
}

PanAndScan settings_of(const json& settings, const std::string& file) {
  constexpr double kSides = 1 << 14, kCrops = 64;
  PanAndScan out;
  const auto on = settings.find("do_pan_and_scan");
  if (on != settings.end() && !on->is_null()) {
    check(on->is_boolean(), file, "do_pan_and_scan is ", on->dump(), ", wanted true or false");
    out.on = on->get<bool>();
  }
  const auto value = [&](const char* key, double fallback, double highest) {
    return number(settings, key, fallback, highest, file);
  };
  out.min_crop = static_cast<int32_t>(value("pan_and_scan_min_crop_size", out.min_crop, kSides));
  out.max_crops = static_cast<int32_t>(value("pan_and_scan_max_num_crops", out.max_crops, kCrops));
  out.min_ratio = value("pan_and_scan_min_ratio_to_activate", out.min_ratio, kSides);
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
    const json config = io::parse_json(*text, file);
    check(config.is_object(), file, "is not an object");
    const auto inner = config.find("image_processor");
    const bool nested = inner != config.end() && inner->is_object();
    if (nested || file.starts_with("pre")) return settings_of(nested ? *inner : config, file);
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
