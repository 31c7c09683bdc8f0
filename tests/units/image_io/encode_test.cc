#include "rbee/io/image/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"
#include "rbee/io/image/png.h"
#include "tests/support/data_folder.h"

namespace rbee::io {
namespace {

const std::string kText =
    "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\xb1 <lora:x:0.8>\nSteps: 20, Seed: 3";

std::string data(const char* name) {
  std::ifstream input(cat(test::data_folder() + "/units/image_io/data/", name), std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

// Soft colours, which every format keeps nearly unchanged.
Pixels picture(int32_t width, int32_t height) {
  Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      const int values[] = {x * 3, y * 4, 200 - x - y};
      for (const int value : values) out.values.push_back(static_cast<uint8_t>(value));
    }
  }
  return out;
}

double mean_difference(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) sum += std::abs(a.values[i] - b.values[i]);
  return sum / static_cast<double>(a.values.size());
}

TEST(Encode, EveryFormatKeepsThePictureAndItsSettings) {
  const Pixels pixels = picture(43, 31);  // odd sides, and a chunk of odd length sooner or later
  for (const ImageFormat format : {ImageFormat::png, ImageFormat::jpeg, ImageFormat::webp}) {
    for (const int32_t quality : {20, 80, 90, 100}) {
      SCOPED_TRACE(cat(name(format), " ", quality));
      const std::string file = encode_image(pixels, {format, quality}, kText);
      EXPECT_EQ(read_image_header(file, "image").format, format);
      const Pixels again = decode_image(file, "image");
      ASSERT_EQ(again.width, 43);
      ASSERT_EQ(again.height, 31);
      EXPECT_LT(mean_difference(pixels, again), quality == 20 ? 12 : 3);
      EXPECT_EQ(image_parameters(file), kText);
      EXPECT_FALSE(image_parameters(encode_image(pixels, {format, quality})).has_value());
    }
  }
}

TEST(Encode, QualityIsPaidInBytes) {
  const Pixels pixels = picture(64, 64);
  for (const ImageFormat format : {ImageFormat::jpeg, ImageFormat::webp}) {
    const size_t low = encode_image(pixels, {format, 20}).size();
    EXPECT_LT(low, encode_image(pixels, {format, 95}).size()) << name(format);
  }
}

TEST(Encode, WhatCannotBeWrittenIsRefused) {
  Pixels pixels = picture(8, 8);
  EXPECT_THROW(encode_image(pixels, {ImageFormat::gif}), Error);
  EXPECT_THROW(encode_image(pixels, {ImageFormat::bmp}), Error);
  EXPECT_THROW(encode_image(pixels, {ImageFormat::jpeg, 101}), Error);
  EXPECT_THROW(encode_image(pixels, {ImageFormat::webp, -1}), Error);
  pixels.channels = 4;
  EXPECT_THROW(encode_image(pixels, {}), Error);
}

TEST(Encode, SettingsThatNoSegmentHoldsAreLeftOutOfJpegFiles) {
  const std::string text(40000, 'x');
  const Pixels pixels = picture(8, 8);
  const std::string file = encode_image(pixels, {ImageFormat::jpeg}, text);
  EXPECT_EQ(decode_image(file, "image").width, 8);
  EXPECT_FALSE(image_parameters(file).has_value());
  EXPECT_FALSE(parameters_fit(ImageFormat::jpeg, text));
  EXPECT_EQ(image_parameters(encode_image(pixels, {ImageFormat::webp}, text)), text);
  EXPECT_TRUE(parameters_fit(ImageFormat::webp, text));
  // The longest text: six bytes of name, 44 of directories, eight of the text's kind.
  const std::string most((65533 - 6 - 44 - 8) / 2, 'x');
  EXPECT_TRUE(parameters_fit(ImageFormat::jpeg, most));
  EXPECT_FALSE(parameters_fit(ImageFormat::jpeg, most + "x"));
  EXPECT_EQ(image_parameters(encode_image(pixels, {ImageFormat::jpeg}, most)), most);
}

// Written by piexif, as in AUTOMATIC1111, and by Pillow.
TEST(Encode, ReadsTheSettingsThatOthersWrote) {
  for (const char* file : {"comment.jpg", "comment.webp", "comment_pillow.jpg"}) {
    EXPECT_EQ(image_parameters(data(file)), kText) << file;
  }
}

TEST(Encode, FindsNothingInDamagedFiles) {
  for (const ImageFormat format : {ImageFormat::jpeg, ImageFormat::webp}) {
    const std::string file = encode_image(picture(16, 16), {format}, "a\nSteps: 3");
    for (size_t size = 0; size < file.size(); ++size) {
      const auto found = image_parameters(file.substr(0, size));
      EXPECT_TRUE(!found || found == "a\nSteps: 3") << size;
    }
  }
}

TEST(Encode, CommentsAreReadInBothOrdersOfBytesAndAsAscii) {
  const std::string block = exif_of_comment("ab");
  EXPECT_EQ(exif_comment(block), "ab");
  EXPECT_EQ(exif_comment(std::string("Exif\0\0", 6) + block), "ab");
  const auto at = [](int value) { return std::string{static_cast<char>(value), 0, 0, 0}; };
  const auto entry = [&](const char* tag, char type, int count, int value) {
    return std::string("\1\0", 2) + std::string(tag, 2) + std::string{type, 0} + at(count) +
           at(value) + at(0);
  };
  const std::string head = std::string("II\x2a\0", 4) + at(8) + entry("\x69\x87", 4, 1, 26);
  const std::string wide = std::string("UNICODE\0", 8) + std::string("a\0\x3d\xd8\x31\xdc", 6);
  EXPECT_EQ(exif_comment(head + entry("\x86\x92", 7, 14, 44) + wide), "a\xf0\x9f\x90\xb1");
  const std::string plain = std::string("ASCII\0\0\0", 8) + "plain";
  EXPECT_EQ(exif_comment(head + entry("\x86\x92", 7, 13, 44) + plain), "plain");
  EXPECT_FALSE(exif_comment(head + entry("\x86\x92", 7, 99, 44) + plain).has_value());
  // Against the block's byte order, and without a mark of it.
  const std::string other = std::string("UNICODE\0", 8) + std::string("\0a\0b", 4);
  EXPECT_EQ(exif_comment(head + entry("\x86\x92", 7, 12, 44) + other), "ab");
  EXPECT_EQ(exif_comment(head + entry("\x86\x92", 7, 12, 44) + "  h\xc3\xa9\xffllo   "),
            "h\xc3\xa9llo");
  const std::string nothing(12, '\0');
  EXPECT_FALSE(exif_comment(head + entry("\x86\x92", 7, 12, 44) + nothing).has_value());
  const std::string japanese = std::string("JIS\0\0\0\0\0", 8) + "\x1b$B$";
  EXPECT_FALSE(exif_comment(head + entry("\x86\x92", 7, 12, 44) + japanese).has_value());
}

std::string gif_with(const std::string& comment) {
  const std::string size = std::string("\1\0\1\0", 4);
  std::string out = "GIF89a" + size + std::string("\x80\0\0", 3) + "rgbRGB";
  for (size_t at = 0; at < comment.size(); at += 255) {
    const std::string part = comment.substr(at, 255);
    if (at == 0) out += "\x21\xfe";
    out += static_cast<char>(part.size()) + part;
  }
  if (!comment.empty()) out += '\0';
  out += "," + std::string(4, '\0') + size + '\0';
  return out + std::string("\2\2\x44\1\0;", 6);
}

// AUTOMATIC1111 reads them from Pillow's "exif" and "comment".
TEST(Encode, CommentsOfOtherPlacesAreRead) {
  const std::string text = "a fox\nSteps: 20, Seed: 3, Size: 64x64" + std::string(300, '.');
  const std::string gif = gif_with(text);
  EXPECT_EQ(decode_image(gif, "image").width, 1);
  EXPECT_EQ(image_comment(gif), text);
  EXPECT_FALSE(image_comment(gif_with("")).has_value());
  const std::string longest(size_t{64} << 10, 'x');
  EXPECT_EQ(image_comment(gif_with(longest)), longest);
  EXPECT_FALSE(image_comment(gif_with(longest + "x")).has_value());
  for (size_t size = 0; size < gif.size(); ++size) {
    static_cast<void>(image_comment(gif.substr(0, size)));
  }

  std::string png = encode_png(picture(8, 8));
  const std::string block = exif_of_comment("a fox");
  const std::string chunk = {0, 0, 0, static_cast<char>(block.size())};
  png.insert(33, chunk + "eXIf" + block + "sums");
  EXPECT_EQ(image_comment(png), "a fox");

  std::string jpeg = encode_image(picture(8, 8), {ImageFormat::jpeg}, {});
  EXPECT_FALSE(image_comment(jpeg).has_value());
  jpeg.insert(2, std::string("\xff\xfe\0\7", 4) + "a fox");
  EXPECT_EQ(image_comment(jpeg), "a fox");
  EXPECT_EQ(decode_image(jpeg, "image").width, 8);
}

TEST(Encode, WhatIsNoTextBecomesTheReplacementCharacter) {
  const std::string replacement = "\xef\xbf\xbd";
  for (const std::string text : {"\xff", "\xe6\x97", "\xc0\x80", "\xed\xa0\x80"}) {
    EXPECT_TRUE(exif_comment(exif_of_comment(text)).value_or("").starts_with(replacement));
  }
}

}  // namespace
}  // namespace rbee::io
