#include "rbee/io/image/pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/expect_error.h"

namespace rbee::io {
namespace {

using testing::HasSubstr;

// Files of Pillow 12: 16 x 8 pixels, the left half (200, 30, 40), the right one (20, 60, 220).
std::string file(const std::string& name) {
  std::ifstream in(RBEE_TEST_DATA "/units/image_io/data/" + name, std::ios::binary);
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

TEST(Pixels, HeadersAreReadWithoutDecoding) {
  const ImageHeader header = read_image_header(file("halves.jpg"), "image");
  EXPECT_EQ(header.format, ImageFormat::jpeg);
  EXPECT_EQ(header.width, 16);
  EXPECT_EQ(read_image_header(file("grey16.png"), "image").format, ImageFormat::png);
}

// A header that claims 100000 x 100000 pixels: nothing of that size is allocated.
TEST(Pixels, OfHugeSizesAreRefusedFromTheHeader) {
  std::string bomb = file("grey16.png");
  for (const size_t at : {size_t{16}, size_t{20}}) bomb.replace(at, 4, "\x00\x01\x86\xa0", 4);
  harness::expect_error("init_image", "100000 x 100000", "8192",
                        [&] { decode_image(bomb, "init_image"); });
  harness::expect_error("mask", "16 x 8", "more than 100",
                        [] { decode_image(file("halves.jpg"), "mask", {.pixels = 100}); });
  std::string empty = file("grey16.png");
  empty.replace(16, 4, std::string(4, '\0'));
  harness::expect_error("init_image", "0 x 8", "8192", [&] { decode_image(empty, "init_image"); });
}

TEST(Pixels, OfBrokenFilesAreRefused) {
  for (const char* name : {"halves.jpg", "progressive.jpg", "grey16.png", "palette.png"}) {
    const std::string whole = file(name);
    for (size_t length = 0; length + 12 < whole.size(); length += 7) {
      const std::string message = harness::message_of(
          [&] { decode_image(std::string_view(whole).substr(0, length), "init_image"); });
      EXPECT_THAT(message, HasSubstr("init_image: ")) << name << " cut to " << length;
    }
  }
  harness::expect_error("image", "neither PNG nor JPEG", "",
                        [] { decode_image("GIF89a", "image"); });
}

TEST(Pixels, OfFourInksAreNotSupported) {
  try {
    decode_image(file("cmyk.jpg"), "image");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("CMYK"));
  }
}

}  // namespace
}  // namespace rbee::io
