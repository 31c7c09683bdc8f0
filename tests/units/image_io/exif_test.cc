#include "rbee/io/image/exif.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/webp.h"
#include "tests/support/data_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace rbee::io {
namespace {

// An APP1 segment with one entry, in byte order "II" or "MM". bytes: of the value, 2 or 4.
std::string exif(bool little, int orientation, int bytes = 2) {
  const auto number = [&](int value, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      out += static_cast<char>(value >> (8 * (little ? i : count - 1 - i)) & 0xFF);
    }
    return out;
  };
  std::string out("Exif\0\0", 6);
  out += little ? "II" : "MM";
  out += number(42, 2) + number(8, 4) + number(2, 2);
  out += number(0x010F, 2) + number(2, 2) + number(4, 4) + "abc" + std::string(1, '\0');
  out += number(0x0112, 2) + number(bytes == 2 ? 3 : 4, 2) + number(1, 4);
  out += number(orientation, bytes) + number(0, 4 - bytes);
  return out + number(0, 4);
}

TEST(Exif, OrientationIsReadInBothOrdersOfBytes) {
  for (const bool little : {true, false}) {
    for (int wanted = 1; wanted <= 8; ++wanted) {
      EXPECT_EQ(exif_orientation(exif(little, wanted)), wanted);
      EXPECT_EQ(exif_orientation(exif(little, wanted, 4)), wanted);
    }
    EXPECT_EQ(exif_orientation(exif(little, 0x10006, 4)), 1);
    EXPECT_EQ(exif_orientation(exif(little, 9)), 1);
  }
}

TEST(Exif, WhatIsBrokenChangesNothing) {
  const std::string whole = exif(true, 6);
  const size_t value = whole.size() - 8;
  for (size_t size = 0; size < value; ++size) {
    EXPECT_EQ(exif_orientation(whole.substr(0, size)), 1) << size;
  }
  std::string far = whole;
  far[10] = far[11] = far[12] = far[13] = '\xFF';  // the offset of the directory
  EXPECT_EQ(exif_orientation(far), 1);
}

// Pillow's exif_transpose of the picture 0 1 2 / 3 4 5.
TEST(Exif, PicturesAreTurnedUpright) {
  const std::vector<std::vector<uint8_t>> wanted = {
      {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
      {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  Pixels stored{.width = 3, .height = 2, .channels = 3, .values = {}};
  for (uint8_t i = 0; i < 6; ++i) stored.values.insert(stored.values.end(), {i, i, i});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Pixels turned = upright(stored, orientation);
    EXPECT_EQ(turned.width, orientation >= 5 ? 2 : 3);
    EXPECT_EQ(turned.height, orientation >= 5 ? 3 : 2);
    std::vector<uint8_t> reds;
    for (size_t i = 0; i < turned.values.size(); i += 3) reds.push_back(turned.values[i]);
    EXPECT_EQ(reds, wanted[static_cast<size_t>(orientation - 1)]) << orientation;
  }
}

// The same file with such a segment after its first marker.
TEST(Exif, OfJpegFilesIsFollowed) {
  std::ifstream input(test::data_folder() + "/units/image_io/data/halves.jpg", std::ios::binary);
  std::string file(std::istreambuf_iterator<char>(input), {});
  const Pixels before = decode_image(file, "image");
  const std::string block = exif(false, 6);
  const auto length = static_cast<int>(block.size() + 2);
  std::string segment = "\xFF\xE1";
  segment += static_cast<char>(length >> 8);
  segment += static_cast<char>(length & 0xFF);
  file.insert(2, segment + block);
  const ImageHeader header = read_image_header(file, "image");
  EXPECT_EQ(header.width, before.height);
  EXPECT_EQ(header.height, before.width);
  const Pixels after = decode_image(file, "image");
  EXPECT_EQ(after.width, before.height);
  EXPECT_EQ(after.values, upright(before, 6).values);
}

// A PNG file with such a block before its pixels, or after them.
std::string png_with(const Pixels& pixels, const std::string& block, bool behind) {
  const std::string whole = encode_png(pixels);
  std::string chunk = {0, 0, 0, static_cast<char>(block.size())};
  chunk += "eXIf" + block + "sums";
  constexpr size_t kHeaderEnd = 33, kEnd = 12;
  const size_t at = behind ? whole.size() - kEnd : kHeaderEnd;
  return whole.substr(0, at) + chunk + whole.substr(at);
}

void expect_turned(const std::string& file, const Pixels& stored, int orientation) {
  const Pixels wanted = upright(stored, orientation);
  const ImageHeader header = read_image_header(file, "image");
  EXPECT_EQ(header.width, wanted.width) << orientation;
  EXPECT_EQ(header.height, wanted.height) << orientation;
  const Pixels found = decode_image(file, "image");
  EXPECT_EQ(found.width, wanted.width) << orientation;
  EXPECT_EQ(found.values, wanted.values) << orientation;
}

TEST(Exif, OfPngAndWebpFilesIsFollowed) {
  constexpr size_t kMark = 6;
  for (const int32_t channels : {3, 4}) {
    Pixels stored{.width = 5, .height = 3, .channels = channels, .values = {}};
    for (int i = 0; i < 15 * channels; ++i) stored.values.push_back(static_cast<uint8_t>(i * 4));
    for (int orientation = 1; orientation <= 8; ++orientation) {
      for (const bool little : {true, false}) {
        const std::string block = exif(little, orientation);
        expect_turned(png_with(stored, block.substr(kMark), little), stored, orientation);
        if (channels == 4) continue;
        const Pixels lossy = decode_image(encode_webp(stored, 90, {}), "image");
        for (const size_t begin : {size_t{0}, kMark}) {
          expect_turned(encode_webp(stored, 90, block.substr(begin)), lossy, orientation);
        }
      }
    }
  }
}

TEST(Exif, ThatIsBrokenLeavesPngAndWebpFilesAsTheyAre) {
  const Pixels stored{.width = 2, .height = 1, .channels = 3, .values = {1, 2, 3, 4, 5, 6}};
  for (const std::string block : {"", "II", "MM*\xff\xff\xff\xff", "no block at all"}) {
    expect_turned(png_with(stored, block, false), stored, 1);
    const Pixels lossy = decode_image(encode_webp(stored, 90, {}), "image");
    expect_turned(encode_webp(stored, 90, block), lossy, 1);
  }
}

}  // namespace
}  // namespace rbee::io
