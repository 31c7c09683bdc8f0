// Work on pictures stops after the client has disconnected.

#include "rbee/core/cancel.h"

#include <gtest/gtest.h>
#include <webp/encode.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "rbee/core/error.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/exif.h"
#include "rbee/io/image/jpeg.h"
#include "rbee/io/image/pixels.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/resize.h"
#include "rbee/io/image/webp.h"
#include "tests/support/data_folder.h"
#include "tests/support/held_bytes.h"
#include "tests/units/image_io/made_png.h"

namespace rbee::io {
namespace {

Pixels grey(int32_t width, int32_t height) {
  Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  out.values.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 128);
  return out;
}

// A BMP file of 24 bits, or of runs of 8 bits, whose rows are zeros.
std::string bmp(uint32_t side, uint16_t bits, uint32_t compression, const std::string& rows) {
  const auto number = [](uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
    return out;
  };
  const std::string colors = bits == 8 ? std::string(size_t{256} * 4, '\0') : "";
  const auto first = static_cast<uint32_t>(14 + 40 + colors.size());
  return "BM" + number(first + static_cast<uint32_t>(rows.size()), 4) + number(0, 4) +
         number(first, 4) + number(40, 4) + number(side, 4) + number(side, 4) + number(1, 2) +
         number(bits, 2) + number(compression, 4) + std::string(20, '\0') + colors + rows;
}

std::string gif() {
  std::ifstream in(test::data_folder() + "/units/image_io/data/halves.gif", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A black square. Its codes of 3 bits stay so, since the table is cleared after each two pixels.
std::string black_gif(uint16_t side) {
  std::string rows;
  uint32_t bits = 0;
  int count = 0;
  const auto add = [&](uint32_t code) {
    bits |= code << count;
    for (count += 3; count >= 8; count -= 8, bits >>= 8) rows += static_cast<char>(bits & 0xFF);
  };
  constexpr uint32_t kClear = 4, kEnd = 5;
  for (int i = 0; i < side * side; ++i) {
    if (i % 2 == 0) add(kClear);
    add(0);
  }
  add(kEnd);
  rows += static_cast<char>(bits & 0xFF);
  const std::string sides = {static_cast<char>(side & 0xFF), static_cast<char>(side >> 8),
                             static_cast<char>(side & 0xFF), static_cast<char>(side >> 8)};
  std::string out = "GIF89a" + sides + std::string("\x80\0\0", 3) + std::string(6, '\0') + "," +
                    std::string(4, '\0') + sides + std::string("\0\2", 2);
  for (size_t at = 0; at < rows.size(); at += UINT8_MAX) {
    const std::string block = rows.substr(at, UINT8_MAX);
    out += static_cast<char>(block.size());
    out += block;
  }
  return out + std::string("\0;", 2);
}

TEST(Cancel, StopsWorkOnPictures) {
  const Pixels picture = grey(64, 48);
  const std::string jpeg = encode_jpeg(picture, 80, {}), png = encode_png(picture);
  const std::string webp = encode_webp(picture, 80, {});
  const struct {
    const char* name;
    std::function<void()> work;
  } all[] = {
      {"lanczos", [&] { resized(picture, 20, 20); }},
      {"bilinear", [&] { resized(picture, 20, 20, Resampler::bilinear); }},
      {"nearest", [&] { resized(picture, 20, 20, Resampler::nearest); }},
      {"PNG", [&] { encode_png(picture); }},
      {"JPEG", [&] { encode_jpeg(picture, 80, {}); }},
      {"WebP", [&] { encode_webp(picture, 80, {}); }},
      {"turning", [&] { upright(picture, 6); }},
      {"mirroring", [&] { upright(picture, 2); }},
      {"a JPEG file", [&] { decode_image(jpeg, "image"); }},
      {"a PNG file", [&] { decode_image(png, "image"); }},
      {"a WebP file", [&] { decode_image(webp, "image"); }},
      {"a GIF file", [&] { decode_image(gif(), "image"); }},
      {"a BMP file", [&] { decode_image(bmp(4, 24, 0, std::string(48, '\0')), "image"); }},
      {"a BMP file of indices", [&] { decode_image(bmp(4, 8, 0, std::string(16, 1)), "image"); }},
      {"a BMP file of runs", [&] { decode_image(bmp(4, 8, 1, std::string("\0\1", 2)), "image"); }},
  };
  for (const auto& [name, work] : all) {
    EXPECT_NO_THROW(work()) << name;
    std::atomic<bool> left{false};
    const CancelScope scope(left);
    EXPECT_NO_THROW(work()) << name;
    left = true;
    try {
      work();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled) << name << ": " << error.what();
    }
  }
}

// Sets a flag when something is allocated after so many bytes or more at once were: within the
// decoder, after its result has its memory.
class Tripwire {
 public:
  explicit Tripwire(size_t bytes) {
    static const int installed =
        __sanitizer_install_malloc_and_free_hooks(on_allocation, [](const volatile void*) {});
    EXPECT_NE(installed, 0);
    flag_ = result_made_ = false;
    bytes_ = bytes;
  }
  ~Tripwire() { bytes_ = 0; }
  Tripwire(const Tripwire&) = delete;
  Tripwire& operator=(const Tripwire&) = delete;

  static const std::atomic<bool>& flag() { return flag_; }

 private:
  static void on_allocation(const volatile void*, size_t bytes) {
    constexpr size_t kOfDecoder = 2048;
    if (bytes_ == 0) return;
    if (result_made_ && bytes >= kOfDecoder) flag_ = true;
    if (bytes >= bytes_) result_made_ = true;
  }
  static inline std::atomic<bool> flag_{false}, result_made_{false};
  static inline std::atomic<size_t> bytes_{0};
};

std::string lossless(const Pixels& pixels) {
  uint8_t* written = nullptr;
  const size_t size = WebPEncodeLosslessRGB(pixels.values.data(), pixels.width, pixels.height,
                                            3 * pixels.width, &written);
  std::string out(reinterpret_cast<const char*>(written), size);
  WebPFree(written);
  return out;
}

TEST(Cancel, StopsADecoderInTheMiddle) {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) GTEST_SKIP() << "nothing counts";
  Pixels picture = grey(320, 240);
  for (size_t i = 0; i < picture.values.size(); ++i) {
    picture.values[i] = static_cast<uint8_t>(i * i / 977 % 251);
  }
  const std::pair<const char*, std::string> files[] = {
      {"PNG", encode_png(picture)},
      {"PNG in passes", made_png(picture, 8, true)},
      {"PNG of 16 bits in passes", made_png(picture, 16, true)},
      {"WebP", encode_webp(picture, 80, {})},
      {"lossless WebP", lossless(picture)},
  };
  for (const auto& [name, bytes] : files) {
    const Tripwire wire(picture.values.size());
    const CancelScope scope(Tripwire::flag());
    try {
      decode_image(bytes, "image");
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled) << name << ": " << error.what();
    }
    EXPECT_TRUE(Tripwire::flag()) << name;
  }
}

TEST(Cancel, StopsTheWebPEncoderInTheMiddle) {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) GTEST_SKIP() << "nothing counts";
  const Pixels picture = grey(320, 240);
  // Its copy in YUV 4:2:0; then it makes its tables.
  const Tripwire wire(size_t{320} * 240 * 3 / 2);
  const CancelScope scope(Tripwire::flag());
  try {
    encode_webp(picture, 80, {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::cancelled) << error.what();
  }
  EXPECT_TRUE(Tripwire::flag());
}

// A picture of one colour, whose opacity goes after its rows are there.
TEST(Cancel, StopsAGifBehindItsRows) {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) GTEST_SKIP() << "nothing counts";
  constexpr uint16_t kSide = 128;  // larger than the decoder's tables
  const std::string file = black_gif(kSide);
  const Pixels whole = decode_image(file, "image");
  EXPECT_EQ(whole.channels, 3);
  EXPECT_EQ(whole.values, std::vector<uint8_t>(size_t{kSide} * kSide * 3));
  const Tripwire wire(size_t{kSide} * kSide * 4);
  const CancelScope scope(Tripwire::flag());
  try {
    decode_image(file, "image");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::cancelled) << error.what();
  }
  EXPECT_TRUE(Tripwire::flag());
}

}  // namespace
}  // namespace rbee::io
