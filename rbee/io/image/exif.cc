#include "rbee/io/image/exif.h"

#include <algorithm>

namespace rbee::io {
namespace {

constexpr std::string_view kMark{"Exif\0\0", 6};
constexpr uint32_t kOrientation = 0x0112;
constexpr uint32_t kShort = 3;  // the type of 16-bit numbers
constexpr size_t kEntry = 12;   // bytes of a directory's entry

// Numbers of a TIFF block in the order of bytes that it says; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}

  uint32_t number(size_t at, size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return 0;
    uint32_t out = 0;
    for (size_t i = 0; i < count; ++i) {
      out = out << 8 | static_cast<uint8_t>(bytes_[at + (little_ ? count - 1 - i : i)]);
    }
    return out;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

}  // namespace

int exif_orientation(std::string_view marker) {
  if (!marker.starts_with(kMark)) return 1;
  const std::string_view block = marker.substr(kMark.size());
  if (!block.starts_with("II") && !block.starts_with("MM")) return 1;
  const Tiff tiff(block);
  const size_t directory = tiff.number(4, 4);
  const size_t entries = tiff.number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * kEntry;
    if (at >= block.size()) break;
    if (tiff.number(at, 2) != kOrientation || tiff.number(at + 2, 2) != kShort) continue;
    const auto value = static_cast<int>(tiff.number(at + 8, 2));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

Pixels upright(Pixels pixels, int orientation) {
  if (orientation == 1) return pixels;
  // Of the stored picture: where its rows and columns begin, and whether rows are columns.
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool turned = orientation >= 5;
  Pixels out{.width = turned ? pixels.height : pixels.width,
             .height = turned ? pixels.width : pixels.height,
             .channels = pixels.channels,
             .values = {}};
  out.values.reserve(pixels.values.size());
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      int32_t column = turned ? y : x, row = turned ? x : y;
      if (from_right) column = pixels.width - 1 - column;
      if (from_below) row = pixels.height - 1 - row;
      const auto pixel =
          pixels.values.begin() + (int64_t{row} * pixels.width + column) * pixels.channels;
      out.values.insert(out.values.end(), pixel, pixel + pixels.channels);
    }
  }
  return out;
}

}  // namespace rbee::io
