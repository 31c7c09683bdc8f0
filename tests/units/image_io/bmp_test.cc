// BMP files, built here from Microsoft's description.

#include <gtest/gtest.h>

#include "rbee/core/error.h"
#include "rbee/io/image/pixels.h"
#include "tests/support/expect_error.h"

namespace rbee::io {
namespace {

using namespace std::string_literals;

using Colors = std::vector<std::vector<int>>;

// Row `y` from the top.
Colors row_of(const Pixels& pixels, size_t y) {
  const auto channels = static_cast<size_t>(pixels.channels);
  Colors out;
  for (size_t x = 0; x < static_cast<size_t>(pixels.width); ++x) {
    const auto at = pixels.values.begin() +
                    static_cast<int64_t>((y * static_cast<size_t>(pixels.width) + x) * channels);
    out.emplace_back(at, at + pixels.channels);
  }
  return out;
}

std::string number(uint32_t value, int bytes = 4) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

struct Dib {
  int32_t width = 2, height = 1;
  uint32_t bits = 24;
  uint32_t compression = 0;
  uint32_t header = 40;
  std::string tables;  // masks or colours between the header and the rows
  std::string rows;
};

std::string bmp(const Dib& dib) {
  std::string out = number(dib.header) + number(static_cast<uint32_t>(dib.width)) +
                    number(static_cast<uint32_t>(dib.height)) + number(1, 2) + number(dib.bits, 2) +
                    number(dib.compression) + std::string(20, '\0');
  out += dib.tables;
  const auto first = static_cast<uint32_t>(14 + out.size());
  return "BM" + number(0) + number(0) + number(first) + out + dib.rows;
}

const std::vector<int> kDark = {10, 20, 30}, kLight = {200, 100, 50};
const std::string kTwoColors = "\x1e\x14\x0a\0\x32\x64\xc8\0"s;

TEST(Bmp, PixelsAreTheirColours) {
  const std::string masks = number(0xf800) + number(0x07e0) + number(0x1f);
  const std::string with_opacity =
      number(0xff) + number(0xff00) + number(0xff0000) + number(0xff000000);
  struct Case {
    Dib dib;
    std::vector<int> first, second;  // of the bottom row
  };
  for (const Case& each :
       {Case{{.rows = "\x1e\x14\x0a\x32\x64\xc8\0\0"s}, kDark, kLight},
        Case{{.bits = 32, .rows = "\x1e\x14\x0a\0\x32\x64\xc8\0"s}, kDark, kLight},
        Case{{.bits = 8, .tables = kTwoColors, .rows = "\0\1\0\0"s}, kDark, kLight},
        Case{{.bits = 4, .tables = kTwoColors, .rows = "\x01\0\0\0"s}, kDark, kLight},
        Case{{.bits = 1, .tables = kTwoColors, .rows = "\x40\0\0\0"s}, kDark, kLight},
        Case{{.bits = 8, .tables = kTwoColors, .rows = "\1\2\0\0"s}, kLight, {0, 0, 0}},
        Case{{.bits = 16, .rows = number(0x7c00, 2) + number(0x03ef, 2)},
             {255, 0, 0},
             {0, 255, 123}},
        Case{{.bits = 16,
              .compression = 3,
              .tables = masks,
              .rows = number(0xf800, 2) + number(0x0400, 2)},
             {255, 0, 0},
             {0, 129, 0}},
        Case{{.bits = 32,
              .compression = 3,
              .header = 56,
              .tables = with_opacity,
              .rows = "\x0a\x14\x1e\x80\xc8\x64\x32\xff"s},
             {10, 20, 30, 128},
             {200, 100, 50, 255}}}) {
    const std::string file = bmp(each.dib);
    EXPECT_EQ(read_image_header(file, "image").format, ImageFormat::bmp);
    EXPECT_EQ(row_of(decode_image(file, "image"), 0), (Colors{each.first, each.second}));
    // The last row's padding may be missing.
    const size_t needed = file.size() - (32 - each.dib.bits * 2 % 32) % 32 / 8;
    EXPECT_NO_THROW(decode_image(file.substr(0, needed), "image"));
    for (size_t length = 2; length < needed; ++length) {
      EXPECT_THROW(decode_image(file.substr(0, length), "image"), Error) << length;
    }
  }
}

TEST(Bmp, RowsAreInOrder) {
  const std::string rows = "\1\1\1\1\1\1\0\0"s + "\2\2\2\2\2\2\0\0"s;
  const auto top = [&](int32_t height) {
    return row_of(decode_image(bmp({.height = height, .rows = rows}), "image"), 0).at(0);
  };
  EXPECT_EQ(top(2), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(top(-2), (std::vector<int>{1, 1, 1}));
}

// Version 1 of OS/2: sides of two bytes, colours of three.
TEST(Bmp, HeadersOfOs2AreRead) {
  const std::string os2 = "BM" + number(0) + number(0) + number(32) + number(12) + number(2, 2) +
                          number(1, 2) + number(1, 2) + number(1, 2) + "\1\2\3\4\5\6"s +
                          "\x40\0\0\0"s;
  EXPECT_EQ(row_of(decode_image(os2, "image"), 0), (Colors{{3, 2, 1}, {6, 5, 4}}));
}

// Colour i is (i, 0, 0).
std::string reds() {
  std::string out;
  for (uint32_t i = 0; i < 256; ++i) out += number(i << 16);
  return out;
}

std::vector<int> indices(const Pixels& pixels, size_t y) {
  std::vector<int> out;
  for (const std::vector<int>& color : row_of(pixels, y)) out.push_back(color[0]);
  return out;
}

// The bytes and pixels in Microsoft's description ("Bitmap Compression").
TEST(Bmp, RunsAreAsDescribed) {
  const Pixels of8 =
      decode_image(bmp({.width = 18,
                        .height = 3,
                        .bits = 8,
                        .compression = 1,
                        .tables = reds(),
                        .rows = "\3\4\5\6\0\3\x45\x56\x67\0\2\x78\0\2\5\1\2\x78\0\0\x9\x1e\0\1"s}),
                   "image");
  EXPECT_EQ(indices(of8, 2), (std::vector<int>{4, 4, 4, 6, 6, 6, 6, 6, 0x45, 0x56, 0x67, 0x78, 0x78,
                                               0, 0, 0, 0, 0}));
  std::vector<int> second(18);
  EXPECT_EQ(indices(of8, 1), second);  // the run reaches past the row
  std::vector<int> third(18);
  std::fill_n(third.begin(), 9, 0x1e);
  EXPECT_EQ(indices(of8, 0), third);
  const Pixels of4 =
      decode_image(bmp({.width = 24,
                        .height = 3,
                        .bits = 4,
                        .compression = 2,
                        .tables = reds().substr(0, 64),
                        .rows = "\3\4\5\6\0\6\x45\x56\x67\0\4\x78\0\2\5\1\4\x78\0\0\x9\x1e\0\1"s}),
                   "image");
  EXPECT_EQ(indices(of4, 2), (std::vector<int>{0, 4, 0, 0, 6, 0, 6, 0, 4, 5, 5, 6,
                                               6, 7, 7, 8, 7, 8, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(indices(of4, 1).back(), 7);
  EXPECT_EQ(indices(of4, 0)[7], 0xe);
}

TEST(Bmp, RunsThatEndTooEarlyAreRefused) {
  const Dib dib{.bits = 8, .compression = 1, .tables = reds(), .rows = "\1\2\0\3\1\1\1\0\0\2\0\1"s};
  const std::string file = bmp(dib);
  EXPECT_EQ(indices(decode_image(file, "image"), 0), (std::vector<int>{2, 1}));
  for (size_t cut = 1; cut <= dib.rows.size(); ++cut) {
    EXPECT_THROW(decode_image(file.substr(0, file.size() - cut), "image"), Error) << cut;
  }
}

TEST(Bmp, OthersAreRefused) {
  const auto refused = [](const Dib& dib, const char* why) {
    harness::expect_error("image", why, "", [&] { decode_image(bmp(dib), "image"); });
  };
  refused({.compression = 4}, "its pixels are packed (4); save it as PNG");
  refused({.compression = 1}, "24 bits a pixel, packed (1)");
  refused({.bits = 8, .compression = 2}, "8 bits a pixel, packed (2)");
  refused({.bits = 24, .compression = 3}, "24 bits a pixel, packed (3)");
  refused({.bits = 2}, "2 bits a pixel");
  refused({.header = 20}, "its header has 20 bytes");
  refused({.bits = 32,
           .compression = 3,
           .tables = number(0xf0f) + number(1) + number(2),
           .rows = "12345678"},
          "do not stand together");
  refused({.height = INT32_MIN}, "its height");
  refused({.height = 0}, "2 x 0 pixels are outside");
  refused({.width = -2}, "-2 x 1 pixels are outside");
}

}  // namespace
}  // namespace rbee::io
