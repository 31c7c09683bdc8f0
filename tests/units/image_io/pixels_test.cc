#include "rbee/io/image/pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/data_folder.h"
#include "tests/support/expect_error.h"

namespace rbee::io {
namespace {

using testing::HasSubstr;

// Files of Pillow 12: 16 x 8 pixels, the left half (200, 30, 40), the right one (20, 60, 220).
std::string file(const std::string& name) {
  std::ifstream in(test::data_folder() + "/units/image_io/data/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<int> at(const Pixels& pixels, int x, int y) {
  const auto begin = pixels.values.begin() + (y * pixels.width + x) * pixels.channels;
  return {begin, begin + pixels.channels};
}

void expect_near(const std::vector<int>& got, const std::vector<int>& wanted, int tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance);
}

TEST(Pixels, OfJpegFilesAreTheirColours) {
  for (const char* name : {"halves.jpg", "progressive.jpg"}) {
    const Pixels pixels = decode_image(file(name), "image");
    EXPECT_EQ(pixels.width, 16);
    EXPECT_EQ(pixels.height, 8);
    expect_near(at(pixels, 2, 4), {200, 30, 40}, 6);
    expect_near(at(pixels, 13, 4), {20, 60, 220}, 6);
  }
  const Pixels grey = decode_image(file("grey.jpg"), "image");
  EXPECT_EQ(grey.channels, 3);
  expect_near(at(grey, 2, 4), {82, 82, 82}, 6);
}

TEST(Pixels, OfPngFilesAreEightBitColours) {
  const Pixels grey = decode_image(file("grey16.png"), "image");
  EXPECT_EQ(grey.channels, 3);
  expect_near(at(grey, 7, 7), {63000 / 257, 63000 / 257, 63000 / 257}, 1);
  const Pixels palette = decode_image(file("palette.png"), "image");
  EXPECT_EQ(palette.channels, 4);
  EXPECT_NE(at(palette, 0, 0)[3], at(palette, 15, 0)[3]);
}

// Pillow 13 wrote the WebP and GIF files.
TEST(Pixels, OfWebpFilesAreTheirColours) {
  for (const auto& [name, tolerance] : {std::pair{"halves.webp", 0}, std::pair{"lossy.webp", 12}}) {
    const Pixels pixels = decode_image(file(name), "image");
    EXPECT_EQ(pixels.width, 16);
    EXPECT_EQ(pixels.height, 8);
    EXPECT_EQ(pixels.channels, 3);
    expect_near(at(pixels, 2, 4), {200, 30, 40}, tolerance);
    expect_near(at(pixels, 13, 4), {20, 60, 220}, tolerance);
  }
  const Pixels opacity = decode_image(file("opacity.webp"), "image");
  EXPECT_EQ(opacity.channels, 4);
  expect_near(at(opacity, 0, 0), {1, 2, 3, 0}, 0);
  expect_near(at(opacity, 1, 0), {200, 30, 40, 255}, 0);
  expect_near(at(opacity, 13, 4), {20, 60, 220, 100}, 0);
}

TEST(Pixels, OfAnimationsAreTheFirst) {
  for (const auto& [name, tolerance] :
       {std::pair{"animated.gif", 0}, std::pair{"animated.webp", 12}}) {
    const Pixels first = decode_image(file(name), "image");
    EXPECT_EQ(first.width, 16) << name;
    EXPECT_EQ(first.channels, 3) << name;
    expect_near(at(first, 2, 4), {200, 30, 40}, tolerance);
  }
}

// The first frame, 10 x 4, at (4, 2) of a canvas; its numbers follow "ANMF" and its
// size.
TEST(Pixels, OfAnimationsStandOnTheirCanvas) {
  std::string whole = file("animated_part.webp");
  const Pixels pixels = decode_image(whole, "image");
  EXPECT_EQ(pixels.width, 16);
  EXPECT_EQ(pixels.height, 8);
  expect_near(at(pixels, 3, 2), {0, 0, 0, 0}, 0);
  expect_near(at(pixels, 4, 2), {200, 30, 40, 255}, 0);
  expect_near(at(pixels, 13, 5), {200, 30, 40, 255}, 0);
  expect_near(at(pixels, 13, 6), {0, 0, 0, 0}, 0);
  for (size_t length = 0; length < whole.rfind("ANMF"); ++length) {
    EXPECT_THROW(decode_image(std::string_view(whole).substr(0, length), "image"), Error) << length;
  }
  std::string opaque = whole;
  opaque[20] = 2;  // an animation without transparency
  const Pixels colors = decode_image(opaque, "image");
  expect_near(at(colors, 3, 2), {0, 0, 0}, 0);
  expect_near(at(colors, 4, 2), {200, 30, 40}, 0);
  expect_near(at(colors, 13, 5), {200, 30, 40}, 0);
  const size_t frame = whole.find("ANMF") + 8;
  whole[frame] = 4;  // two pixels each from the left
  harness::expect_error("image", "a picture beyond its canvas", "",
                        [&] { decode_image(whole, "image"); });
}

TEST(Pixels, OfGifFilesAreTheirColours) {
  const Pixels halves = decode_image(file("halves.gif"), "image");
  EXPECT_EQ(halves.channels, 3);
  expect_near(at(halves, 7, 7), {200, 30, 40}, 0);
  expect_near(at(halves, 8, 0), {20, 60, 220}, 0);
  // Rows of three colours, the third one transparent in one of the files.
  const std::vector<int> colors[] = {{10, 20, 30}, {200, 100, 50}, {0, 255, 0}};
  for (const char* name : {"interlaced.gif", "transparent.gif"}) {
    const Pixels stripes = decode_image(file(name), "image");
    ASSERT_EQ(stripes.height, 23);
    const bool opaque = stripes.channels == 3;
    EXPECT_EQ(opaque, std::string_view(name) == "interlaced.gif");
    for (int y = 0; y < stripes.height; ++y) {
      std::vector<int> wanted = colors[y % 3];
      if (!opaque) wanted.push_back(y % 3 == 2 ? 0 : 255);
      expect_near(at(stripes, 4, y), wanted, 0);
    }
  }
}

// A frame that reaches beyond the file's screen.
TEST(Pixels, OfGifFilesStayOnTheScreen) {
  std::string wide = file("interlaced.gif");
  const size_t descriptor = wide.find(',');
  wide[descriptor + 1] = 1;  // from the left
  harness::expect_error("image", "beyond its screen", "", [&] { decode_image(wide, "image"); });
}

TEST(Pixels, OfFormatsThatAreNotReadAreNamed) {
  using namespace std::string_literals;
  for (const auto& [bytes, name] :
       {std::pair{"II*\0\x08\0\0\0"s, "a TIFF file"}, std::pair{"MM\0*"s, "a TIFF file"},
        std::pair{"\0\0\0\x20"
                  "ftypavif\0\0\0\0"s,
                  "an AVIF file"},
        std::pair{"\0\0\0\x18"
                  "ftypheic\0\0\0\0"s,
                  "a HEIC file"},
        std::pair{"\xff\x0a\0\0"s, "a JPEG XL file"}}) {
    harness::expect_error("image", name, "save it as PNG", [&] { decode_image(bytes, "image"); });
  }
}

TEST(Pixels, HeadersAreReadWithoutDecoding) {
  const ImageHeader header = read_image_header(file("halves.jpg"), "image");
  EXPECT_EQ(header.format, ImageFormat::jpeg);
  EXPECT_EQ(header.width, 16);
  EXPECT_EQ(read_image_header(file("grey16.png"), "image").format, ImageFormat::png);
  for (const auto& [name, format] : {std::pair{"interlaced.gif", ImageFormat::gif},
                                     std::pair{"halves.webp", ImageFormat::webp}}) {
    EXPECT_EQ(read_image_header(file(name), "image").format, format);
  }
}

std::string jpeg_segment(char marker, std::string content) {
  const size_t length = content.size() + 2;
  const char start[] = {'\xff', marker, static_cast<char>(length >> 8),
                        static_cast<char>(length & 0xff)};
  return std::string(start, sizeof start) + content;
}

// Grey, 1024 x 1024 pixels, progressive: a scan of 2 KiB, then any number of 12-byte scans; each
// says "no more" for all 16,384 blocks (ITU-T T.81, G.1.2.2).
std::string jpeg_of_scans(int scans) {
  using namespace std::string_literals;
  const auto scan = [](std::string spectrum, std::string data) {
    return jpeg_segment('\xda', "\1\1\0"s + spectrum) + data;
  };
  const std::string one_short_code = "\1"s + std::string(15, '\0');
  std::string out = "\xff\xd8"s + jpeg_segment('\xdb', "\0"s + std::string(64, '\1'));
  out += jpeg_segment('\xc2', "\x08\x04\x00\x04\x00\x01\x01\x11\x00"s);
  out += jpeg_segment('\xc4', "\x00"s + one_short_code + "\x00"s);  // no change of the mean
  out += jpeg_segment('\xc4', "\x10"s + one_short_code + "\xe0"s);  // ends 16,384 blocks
  out += scan("\0\0\0"s, std::string(16384 / 8, '\0'));
  for (int i = 1; i < scans; ++i) out += scan("\1\x3f\0"s, "\0\1"s);
  return out + "\xff\xd9"s;
}

TEST(Pixels, OfJpegFilesWithManyScansAreRefused) {
  expect_near(at(decode_image(jpeg_of_scans(100), "image"), 500, 500), {128, 128, 128}, 0);
  harness::expect_error("image", "more than 100 scans", "",
                        [] { decode_image(jpeg_of_scans(101), "image"); });
}

// A header that claims 100000 x 100000 pixels: no memory of that size is allocated.
TEST(Pixels, OfHugeSizesAreRefusedFromTheHeader) {
  std::string bomb = file("grey16.png");
  for (const size_t at : {size_t{16}, size_t{20}}) bomb.replace(at, 4, "\x00\x01\x86\xa0", 4);
  harness::expect_error("init_image", "100000 x 100000", "8192",
                        [&] { decode_image(bomb, "init_image"); });
  harness::expect_error("mask", "16 x 8", "more than 100",
                        [] { decode_image(file("halves.jpg"), "mask", {.pixels = 100}); });
  std::string screen = file("halves.gif");
  screen.replace(6, 4, "\xff\xff\xff\xff", 4);
  harness::expect_error("image", "65535 x 65535", "8192", [&] { decode_image(screen, "image"); });
  std::string canvas = file("opacity.webp");  // a lossless one begins at 20 with 0x2f, then sizes
  canvas.replace(21, 4, "\xff\xff\xff\x1f", 4);
  harness::expect_error("image", "16384 x 16384", "8192", [&] { decode_image(canvas, "image"); });
  std::string empty = file("grey16.png");
  empty.replace(16, 4, std::string(4, '\0'));
  harness::expect_error("init_image", "0 x 8", "8192", [&] { decode_image(empty, "init_image"); });
}

TEST(Pixels, OfBrokenFilesAreRefused) {
  for (const char* name :
       {"halves.jpg", "progressive.jpg", "grey16.png", "palette.png", "halves.webp", "lossy.webp",
        "opacity.webp", "halves.gif", "interlaced.gif", "transparent.gif"}) {
    const std::string whole = file(name);
    for (size_t length = 0; length + 12 < whole.size(); length += 7) {
      const std::string message = harness::message_of(
          [&] { decode_image(std::string_view(whole).substr(0, length), "init_image"); });
      EXPECT_THAT(message, HasSubstr("init_image: ")) << name << " cut to " << length;
    }
  }
  harness::expect_error("image", "are no PNG, JPEG, WebP, GIF or BMP file", "",
                        [] { decode_image("B26", "image"); });
}

// Also where all pixels are there.
TEST(Pixels, OfWebpFilesThatEndEarlyAreRefused) {
  for (const char* name : {"halves.webp", "lossy.webp", "opacity.webp"}) {
    std::string cut = file(name);
    for (cut.pop_back(); cut.size() > 12; cut.pop_back()) {
      const std::string message = harness::message_of([&] { decode_image(cut, "image"); });
      EXPECT_THAT(message, HasSubstr("image: ")) << name << " cut to " << cut.size();
    }
  }
}

// As Pillow turns the file into RGB.
TEST(Pixels, OfFourInksBecomeColours) {
  const Pixels pixels = decode_image(file("cmyk.jpg"), "image");
  EXPECT_EQ(pixels.width, 16);
  EXPECT_EQ(pixels.height, 8);
  ASSERT_EQ(pixels.channels, 3);
  const auto& values = pixels.values;
  EXPECT_EQ(std::vector<uint8_t>(values.begin(), values.begin() + 3),
            (std::vector<uint8_t>{200, 30, 40}));
  EXPECT_EQ(std::vector<uint8_t>(values.end() - 3, values.end()),
            (std::vector<uint8_t>{20, 60, 220}));
}

}  // namespace
}  // namespace rbee::io
