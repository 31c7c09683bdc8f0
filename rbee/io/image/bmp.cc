#include "rbee/io/image/bmp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"

namespace rbee::io {
namespace {

constexpr size_t kFileHeader = 14;
constexpr uint32_t kOs2Header = 12, kWindowsHeader = 40, kHeaderWithOpacity = 56;

enum Compression : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kOpacityMasks = 6 };

// Which bits of a pixel are each of red, green, blue and opacity; 0: none are.
using Masks = std::array<uint32_t, 4>;
using Color = std::array<uint8_t, 3>;

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view field) : bytes_(bytes), field_(field) {}

  // A little-endian number of `count` bytes.
  uint32_t number(size_t at, size_t count) const {
    uint32_t out = 0;
    for (size_t i = 0; i < count; ++i) out |= uint32_t{byte(at + i)} << (8 * i);
    return out;
  }
  uint8_t byte(size_t at) const {
    require(at + 1);
    return static_cast<uint8_t>(bytes_[at]);
  }
  void require(size_t size) const {
    check(size <= bytes_.size(), field_, "it is no whole BMP file: it has ", bytes_.size(),
          " bytes, not ", size);
  }
  template <typename... Parts>
  void require_readable(bool good, const Parts&... why) const {
    check(good, field_, "it is no BMP file that can be read: ", why...);
  }

 private:
  std::string_view bytes_, field_;
};

struct Layout {
  uint32_t header = 0;  // bytes
  int64_t width = 0, height = 0;
  bool from_top = false;
  uint32_t bits = 0;  // of a pixel
  uint32_t compression = kPlain;
  size_t first_row = 0;  // where the rows begin
  size_t colors = 0;     // of the palette, as the file says; 0: all

  bool has_masks() const { return compression == kMasks || compression == kOpacityMasks; }
  bool has_runs() const { return compression == kRuns8 || compression == kRuns4; }
  size_t used_bytes() const { return (static_cast<size_t>(width) * bits + 7) / 8; }  // of a row
  size_t row_bytes() const { return (used_bytes() + 3) / 4 * 4; }
  // Row `y` as the file has it is this one from the top.
  size_t place(size_t y) const { return from_top ? y : static_cast<size_t>(height) - 1 - y; }
};

void check_layout(const Reader& file, const Layout& layout) {
  constexpr std::array<uint32_t, 6> kDepths = {1, 4, 8, 16, 24, 32};
  const uint32_t bits = layout.bits;
  file.require_readable(std::ranges::find(kDepths, bits) != kDepths.end(), bits, " bits a pixel");
  const bool known = layout.compression == kPlain || layout.has_masks() || layout.has_runs();
  file.require_readable(known && (layout.header != 64 || !layout.has_masks()),
                        "its pixels are packed (", layout.compression, "); save it as PNG");
  const bool fits = layout.has_masks()             ? bits == 16 || bits == 32
                    : layout.compression == kRuns8 ? bits == 8
                                                   : layout.compression != kRuns4 || bits == 4;
  file.require_readable(fits, bits, " bits a pixel, packed (", layout.compression, ")");
  file.require_readable(layout.height <= INT32_MAX, "its height is ", layout.height);
}

Layout layout_of(const Reader& file) {
  constexpr std::array<uint32_t, 7> kHeaders = {
      kOs2Header, kWindowsHeader, 52, kHeaderWithOpacity, 64, 108, 124};
  Layout out;
  out.header = file.number(kFileHeader, 4);
  file.require_readable(std::ranges::find(kHeaders, out.header) != kHeaders.end(),
                        "its header has ", out.header, " bytes");
  out.first_row = file.number(10, 4);
  const bool os2 = out.header == kOs2Header;
  const size_t side = os2 ? 2 : 4;
  const uint32_t width = file.number(18, side), height = file.number(18 + side, side);
  out.width = os2 ? int64_t{width} : int64_t{static_cast<int32_t>(width)};
  out.height = os2 ? int64_t{height} : int64_t{static_cast<int32_t>(height)};
  out.from_top = out.height < 0;
  out.height = std::abs(out.height);
  out.bits = file.number(18 + 2 * side + 2, 2);
  if (!os2) {
    out.compression = file.number(30, 4);
    out.colors = file.number(46, 4);
  }
  check_layout(file, out);
  return out;
}

Masks masks_of(const Reader& file, const Layout& layout) {
  if (!layout.has_masks()) {
    return layout.bits == 16 ? Masks{0x7c00, 0x03e0, 0x001f, 0}
                             : Masks{0xff0000, 0x00ff00, 0x0000ff, 0};
  }
  const bool opacity = layout.compression == kOpacityMasks || layout.header >= kHeaderWithOpacity;
  Masks out{};
  for (size_t i = 0; i < (opacity ? 4 : 3); ++i) {
    out[i] = file.number(kFileHeader + kWindowsHeader + 4 * i, 4);
    const uint32_t low = out[i] == 0 ? 0 : out[i] >> std::countr_zero(out[i]);
    file.require_readable((low & (low + 1)) == 0 && (low != 0 || i == 3),
                          "the bits of a colour do not stand together");
  }
  return out;
}

// 0 to 255, as Pillow rounds it.
uint8_t share(uint32_t pixel, uint32_t mask) {
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
  return static_cast<uint8_t>(value * UINT8_MAX / most);
}

// Writers leave colours out that no pixel has.
std::array<Color, 256> palette_of(const Reader& file, const Layout& layout) {
  std::array<Color, 256> out{};
  const bool os2 = layout.header == kOs2Header;
  const size_t bytes = os2 ? 3 : 4, begin = kFileHeader + layout.header;
  const size_t most = size_t{1} << layout.bits;
  const size_t room = layout.first_row > begin ? (layout.first_row - begin) / bytes : 0;
  const size_t said = layout.colors == 0 ? most : layout.colors;
  for (size_t i = 0; i < std::min({most, said, room}); ++i) {
    for (size_t c = 0; c < 3; ++c) out[i][c] = file.byte(begin + i * bytes + 2 - c);
  }
  return out;
}

// Pictures of up to 8 bits a pixel.
class PaletteDecoder {
 public:
  PaletteDecoder(const Reader& file, const Layout& layout, Pixels& out)
      : file_(file),
        layout_(layout),
        width_(static_cast<size_t>(layout.width)),
        height_(static_cast<size_t>(layout.height)),
        colors_(palette_of(file, layout)),
        out_(out) {}

  void plain() {
    for (size_t y = 0; y < height_; ++y) {
      check_cancelled("image");
      const size_t row = layout_.first_row + y * layout_.row_bytes();
      for (size_t x = 0; x < width_; ++x) put(x, y, index(row, x, layout_.bits));
    }
  }

  void runs() {
    for (size_t y = 0; y < height_; ++y) {
      for (size_t x = 0; x < width_; ++x) put(x, y, 0);
    }
    size_t at = layout_.first_row, x = 0, y = 0;
    while (y < height_) {
      if (x == 0) check_cancelled("image");
      const size_t count = file_.byte(at), value = file_.byte(at + 1);
      at += 2;
      if (count > 0) {
        x = run(x, y, count, value);
      } else if (value > kDelta) {
        for (size_t i = 0; i < value; ++i) put(x + i, y, index(at, i, layout_.bits));
        x += value;
        at += (value * layout_.bits + 15) / 16 * 2;
      } else if (value == kDelta) {
        x += file_.byte(at);
        y += file_.byte(at + 1);
        at += 2;
      } else if (value == kEndOfPicture) {
        return;
      } else {
        x = 0;
        ++y;
      }
    }
  }

 private:
  // Behind a count of 0; 0 ends a row, and larger numbers say how many pixels follow as they are.
  static constexpr size_t kEndOfPicture = 1, kDelta = 2;

  // A run of RLE4 has two colours in turn.
  size_t run(size_t x, size_t y, size_t count, size_t value) {
    const bool halves = layout_.compression == kRuns4;
    for (size_t i = 0; i < count; ++i) {
      put(x + i, y, !halves ? value : (i % 2 == 0 ? value >> 4 : value & 0xf));
    }
    return x + count;
  }

  size_t index(size_t row, size_t x, size_t bits) const {
    const size_t bit = x * bits;
    const size_t value = file_.byte(row + bit / 8);
    return (value >> (8 - bits - bit % 8)) & ((size_t{1} << bits) - 1);
  }

  // Skips the part of a run beyond its row.
  void put(size_t x, size_t y, size_t index) {
    if (x >= width_) return;
    std::ranges::copy(colors_[index], &out_.values[(layout_.place(y) * width_ + x) * 3]);
  }

  const Reader& file_;
  const Layout& layout_;
  const size_t width_, height_;
  const std::array<Color, 256> colors_;
  Pixels& out_;
};

void decode_masked(const Reader& file, const Layout& layout, const Masks& masks, Pixels& out) {
  const size_t bytes = layout.bits / 8, width = static_cast<size_t>(layout.width);
  const auto channels = static_cast<size_t>(out.channels);
  for (size_t y = 0; y < static_cast<size_t>(layout.height); ++y) {
    check_cancelled("image");
    const size_t row = layout.first_row + y * layout.row_bytes();
    uint8_t* to = &out.values[layout.place(y) * width * channels];
    for (size_t x = 0; x < width; ++x) {
      const uint32_t pixel = file.number(row + x * bytes, bytes);
      for (size_t c = 0; c < channels; ++c) *to++ = share(pixel, masks[c]);
    }
  }
}

}  // namespace

ImageHeader read_bmp_header(std::string_view bytes, std::string_view field) {
  const Layout layout = layout_of(Reader(bytes, field));
  return {ImageFormat::bmp, static_cast<int32_t>(layout.width),
          static_cast<int32_t>(layout.height)};
}

Pixels decode_bmp(std::string_view bytes, std::string_view field) {
  const Reader file(bytes, field);
  const Layout layout = layout_of(file);
  const auto width = static_cast<size_t>(layout.width), height = static_cast<size_t>(layout.height);
  if (!layout.has_runs()) {  // the last row may come without its filling
    file.require(layout.first_row + layout.row_bytes() * (height - 1) + layout.used_bytes());
  }
  const Masks masks = layout.bits > 8 ? masks_of(file, layout) : Masks{};
  const size_t channels = masks[3] != 0 ? 4 : 3;
  Pixels out{.width = static_cast<int32_t>(width),
             .height = static_cast<int32_t>(height),
             .channels = static_cast<int32_t>(channels),
             .values = std::vector<uint8_t>(width * height * channels)};
  if (layout.bits > 8) {
    decode_masked(file, layout, masks, out);
  } else if (PaletteDecoder decoder(file, layout, out); layout.has_runs()) {
    decoder.runs();
  } else {
    decoder.plain();
  }
  return out;
}

}  // namespace rbee::io
