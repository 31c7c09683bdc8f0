#include "rbee/io/image/png.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/support/data_folder.h"
#include "tests/support/expect_error.h"
#include "tests/units/image_io/made_png.h"

namespace rbee::io {
namespace {

Pixels sample(int32_t channels) {
  Pixels out{.width = 5, .height = 3, .channels = channels, .values = {}};
  for (int i = 0; i < 15 * channels; ++i) out.values.push_back(static_cast<uint8_t>(i * 7));
  return out;
}

TEST(Png, KeepsPixels) {
  for (const int32_t channels : {3, 4}) {
    const Pixels pixels = sample(channels);
    const Pixels again = decode_image(encode_png(pixels), "image");
    EXPECT_EQ(again.width, 5);
    EXPECT_EQ(again.height, 3);
    EXPECT_EQ(again.channels, channels);
    EXPECT_EQ(again.values, pixels.values);
  }
}

// Row lengths around the filter's block size, and each kind of neighbourhood.
TEST(Png, KeepsPixelsOfEveryFilterAndWidth) {
  std::mt19937 random(5);
  for (const int32_t width : {1, 2, 170, 171, 172, 341, 342, 700}) {
    for (const int32_t channels : {3, 4}) {
      Pixels pixels{.width = width, .height = 24, .channels = channels, .values = {}};
      for (int32_t y = 0; y < pixels.height; ++y) {
        for (int32_t i = 0; i < width * channels; ++i) {
          const int32_t slope = y < 6 ? i : y < 12 ? 11 * y : i + 7 * y;
          const int32_t noise = y < 18 ? 0 : static_cast<int32_t>(random() % 256);
          pixels.values.push_back(static_cast<uint8_t>(slope + noise));
        }
      }
      const Pixels again = decode_image(encode_png(pixels), "image");
      ASSERT_EQ(again.values, pixels.values) << width << ", " << channels << " channels";
    }
  }
}

TEST(Png, IsShortForSmoothPictures) {
  Pixels pixels{.width = 256, .height = 256, .channels = 3, .values = {}};
  for (int32_t y = 0; y < 256; ++y)
    for (int32_t i = 0; i < 3 * 256; ++i) pixels.values.push_back(static_cast<uint8_t>(y + i / 3));
  EXPECT_LT(encode_png(pixels).size(), pixels.values.size() / 20);
}

TEST(Png, KeepsTexts) {
  const std::string parameters = "a cat\nNegative prompt: dog\nSteps: 20";
  const std::string bytes = encode_png(
      sample(3), {{"parameters", parameters}, {"note", "\xc3\xa9t\xc3\xa9 \xe2\x98\x83"}});
  EXPECT_EQ(png_text(bytes, "parameters"), parameters);
  EXPECT_EQ(png_text(bytes, "note"), "\xc3\xa9t\xc3\xa9 \xe2\x98\x83");
  EXPECT_EQ(png_text(bytes, "other"), std::nullopt);
  EXPECT_EQ(decode_image(bytes, "image").values, sample(3).values);
}

// Written by Pillow: Latin-1 in tEXt, UTF-8 in iTXt.
TEST(Png, ReadsTextsOfOthers) {
  std::ifstream in(test::data_folder() + "/units/image_io/data/texts.png", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(png_text(bytes, "parameters"), "caf\xc3\xa9\nSteps: 20");
  EXPECT_EQ(png_text(bytes, "other"), "na\xc3\xafve \xe2\x98\x83");
}

// Written by Pillow: Latin-1 in zTXt, UTF-8 in a compressed iTXt.
TEST(Png, ReadsCompressedTextsOfOthers) {
  const std::string path = test::data_folder() + "/units/image_io/data/texts_zipped.png";
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(png_text(bytes, "parameters"), "caf\xc3\xa9\nSteps: 20");
  EXPECT_EQ(png_text(bytes, "other"), "na\xc3\xafve \xe2\x98\x83");
}

// This many letters as an uncompressed zlib stream (RFC 1950 and 1951).
std::string stored(size_t letters) {
  std::string out = "\x78\x01";
  uint32_t a = 1, b = 0;
  constexpr size_t kMostOfABlock = 0xffff;
  for (size_t left = letters; left > 0;) {
    const size_t count = std::min(left, kMostOfABlock);
    left -= count;
    const auto low = static_cast<char>(count & 0xff), high = static_cast<char>(count >> 8);
    out += {static_cast<char>(left == 0), low, high, static_cast<char>(~low),
            static_cast<char>(~high)};
    out.append(count, 'x');
    for (size_t i = 0; i < count; ++i) b = (b + (a = (a + 'x') % 65521)) % 65521;
  }
  for (const uint32_t byte : {b >> 8, b, a >> 8, a}) out += static_cast<char>(byte & 0xff);
  return out;
}

TEST(Png, InflatesNoMoreThanATextHas) {
  const auto file = [](size_t letters) {
    const std::string data = std::string("key\0\0", 5) + stored(letters);
    std::string length;
    for (const int shift : {24, 16, 8, 0}) length += static_cast<char>(data.size() >> shift & 0xff);
    const std::string whole = encode_png(sample(3), {{"key", "later"}});
    constexpr size_t kHeaderEnd = 33;
    return whole.substr(0, kHeaderEnd) + length + "zTXt" + data + "sums" + whole.substr(kHeaderEnd);
  };
  constexpr size_t kMost = size_t{1} << 20;
  EXPECT_EQ(png_text(file(kMost), "key"), std::string(kMost, 'x'));
  EXPECT_EQ(png_text(file(kMost + 1), "key"), std::nullopt);
  EXPECT_EQ(png_text(file(kMost + 1), "other"), std::nullopt);
}

TEST(Png, FindsNoTextInDamagedFiles) {
  const std::string bytes = encode_png(sample(3), {{"parameters", "x"}});
  for (size_t length = 0; length < 45; ++length) {
    EXPECT_EQ(png_text(std::string_view(bytes).substr(0, length), "parameters"), std::nullopt);
  }
  std::string huge = bytes;
  huge.replace(33, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(png_text(huge, "parameters"), std::nullopt);
  EXPECT_EQ(png_text("no PNG", "parameters"), std::nullopt);
}

int64_t most_resident_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{used.ru_maxrss} << 10;
}

std::string big_endian(size_t value) {
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

// Written by Python: one pixel, and a text of 7.9 MB when inflated, here 20 times.
TEST(Png, InflatesNothingButPixels) {
  const std::string path = test::data_folder() + "/units/image_io/data/large_text.png";
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  constexpr size_t kHeaderEnd = 33, kChunkFrame = 12;
  const size_t end = bytes.find("IDAT") - 4;
  const std::string text = bytes.substr(kHeaderEnd, end - kHeaderEnd);
  ASSERT_GT(text.size(), kChunkFrame);
  std::string file = bytes.substr(0, kHeaderEnd);
  for (int i = 0; i < 20; ++i) file += text;
  const int64_t before = most_resident_bytes();
  EXPECT_EQ(decode_image(file + bytes.substr(end), "image").values,
            (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_LT(most_resident_bytes() - before, int64_t{32} << 20);
}

// The rows of one picture after the header of another.
TEST(Png, RefusesMuchBehindItsRows) {
  constexpr size_t kHeaderEnd = 33;
  const auto with_rows = [](int32_t rows) {
    const Pixels one{.width = 1, .height = 1, .values = std::vector<uint8_t>(3)};
    Pixels many = one;
    many.height = rows;
    many.values.resize(static_cast<size_t>(rows) * 3);
    return encode_png(one).substr(0, kHeaderEnd) + encode_png(many).substr(kHeaderEnd);
  };
  EXPECT_EQ(decode_image(with_rows(100), "image").values, (std::vector<uint8_t>{0, 0, 0}));
  harness::expect_error("image", "more than the 4 bytes", "rows",
                        [&] { decode_image(with_rows(30'000), "image"); });
}

// Written by Python: the pixels of sample(3) in seven passes.
TEST(Png, ReadsInterlacedFiles) {
  std::ifstream in(test::data_folder() + "/units/image_io/data/interlaced.png", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(decode_image(bytes, "image").values, sample(3).values);
}

TEST(Png, ReadsRowsAndPassesOfAllDepths) {
  Pixels wide = sample(3);
  wide.width = 3;
  wide.height = 5;
  for (const Pixels& pixels : {sample(3), sample(4), wide}) {
    for (const int bits : {8, 16}) {
      for (const bool in_passes : {false, true}) {
        const std::string bytes = made_png(pixels, bits, in_passes);
        EXPECT_EQ(decode_image(bytes, "image").values, pixels.values) << bits << in_passes;
      }
    }
  }
}

TEST(Png, RefusesUnknownChunksThatItMayNotPassOver) {
  constexpr size_t kHeaderEnd = 33;
  const std::string whole = encode_png(sample(4));
  for (const char* type : {"raNd", "RANd"}) {
    const std::string file = whole.substr(0, kHeaderEnd) + big_endian(1) + type + "xsums";
    const auto decode = [&] { return decode_image(file + whole.substr(kHeaderEnd), "image"); };
    if (type[0] == 'r') {
      EXPECT_EQ(decode().values, sample(4).values);
    } else {
      harness::expect_error("image", "no", "PNG", [&] { static_cast<void>(decode()); });
    }
  }
}

// A text of 1.3 GB, which would be allocated before the end of the file is noticed.
TEST(Png, RefusesChunksBeyondTheEndOfTheFile) {
  constexpr size_t kHeaderEnd = 33;
  const std::string whole = encode_png(sample(3)), head("\x52\0\0\x14iTXt", 8);
  for (const std::string& rest : {whole.substr(kHeaderEnd), std::string()}) {
    harness::expect_error("image", "no whole PNG", "a chunk of 1375731732 bytes", [&] {
      static_cast<void>(decode_image(whole.substr(0, kHeaderEnd) + head + rest, "image"));
    });
  }
}

TEST(Png, RefusesWhatItCannotWrite) {
  Pixels wrong = sample(3);
  wrong.values.pop_back();
  harness::expect_error("png", "44", "5 x 3", [&] { static_cast<void>(encode_png(wrong)); });
  harness::expect_error("png", "80", "79", [] {
    static_cast<void>(encode_png(sample(3), {{std::string(80, 'k'), "x"}}));
  });
}

}  // namespace
}  // namespace rbee::io
