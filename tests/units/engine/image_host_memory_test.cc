// The host memory that large pictures need, in bytes per pixel of the largest one. The sanitizer's
// allocator counts it; without a sanitizer nothing is counted.

#include <gtest/gtest.h>

#include <future>
#include <random>

#include "rbee/engine/image/settings.h"
#include "rbee/engine/image/upscale.h"
#include "rbee/io/image/large_pictures.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/resize.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/support/held_bytes.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using HostMemory = testing::HeldBytes;

constexpr int32_t kWidth = 2048, kHeight = 1024;
constexpr double kPixels = double{kWidth} * kHeight;
// Of a request's limit of 512 MiB, because a picture has at most 2^25 pixels.
constexpr double kMost = 16;

// Noise: a PNG file of it has about as many bytes as the pixels.
io::Pixels noise(int32_t width, int32_t height, int32_t channels) {
  std::minstd_rand random(7);
  io::Pixels out{.width = width, .height = height, .channels = channels, .values = {}};
  out.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height * channels));
  for (uint8_t& value : out.values) value = static_cast<uint8_t>(random() >> 8);
  return out;
}

// White in columns `from` to `end`.
io::Pixels band(int32_t from, int32_t end) {
  io::Pixels out{.width = kWidth, .height = kHeight, .channels = 3, .values = {}};
  out.values.resize(static_cast<size_t>(kPixels) * 3);
  for (size_t i = 0; i < out.values.size(); ++i) {
    const auto x = static_cast<int32_t>(i / 3 % kWidth);
    out.values[i] = x >= from && x < end ? 255 : 0;
  }
  return out;
}

double of_request(const ImageRequest& request,
                  const std::function<double(double, const std::function<void()>&)>& count) {
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  auto sink = std::make_shared<ImageRecorder>();
  return count(kPixels, [&] {
    engine->submit(request, sink);
    ASSERT_TRUE(sink->wait());
    ASSERT_EQ(sink->images.size(), 1u);
  });
}

ImageRequest large_request() {
  ImageRequest out;
  out.prompt = "x";
  out.steps = 1;
  out.width = out.height = 64;
  out.init_image = io::encode_png(noise(kWidth, kHeight, 4));
  return out;
}

TEST_F(HostMemory, OfALargePictureOfWhichAPartIsPainted) {
  ImageRequest request = large_request();
  request.mask_only = true;
  for (const auto& [from, end] : {std::pair{900, 1000}, std::pair{0, kWidth}}) {
    request.mask_image = io::encode_png(band(from, end));
    for (const int blur : {0, 8}) {
      request.mask_blur = blur;
      EXPECT_LT(of_request(request, bytes_per), kMost) << from << ", " << blur;
    }
  }
}

// As one takes, and what the others keep until their turns: the files. A mask counts as a picture,
// and alone is large enough to wait.
TEST_F(HostMemory, OfLargePicturesOfManyAtOnce) {
  constexpr int32_t kLong = 4096, kShort = 2304, kClients = 3;
  constexpr double kAll = double{kLong} * kShort;
  static_assert(kAll > io::LargePictures::kLarge);
  const auto plain = [](int32_t width, int32_t height) {
    io::Pixels out{.width = width, .height = height, .channels = 4, .values = {}};
    out.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 4, 200);
    return io::encode_png(out);
  };
  ImageRequest request;
  request.steps = 1;
  request.width = request.height = 64;
  request.init_image = plain(64, 64);
  request.mask_image = plain(kLong, kShort);
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  const auto ask = [&](int32_t clients) {
    std::vector<std::future<void>> all;
    for (int32_t i = 0; i < clients; ++i) {
      all.push_back(std::async(std::launch::async, [&, own = request, i]() mutable {
        own.client = own.job_id = cat(i);
        auto sink = std::make_shared<ImageRecorder>();
        engine->submit(std::move(own), sink);
        ASSERT_TRUE(sink->wait());
        ASSERT_EQ(sink->images.size(), 1u);
      }));
    }
    for (std::future<void>& each : all) each.get();
  };
  const double alone = bytes_per(kAll, [&] { ask(1); });
  EXPECT_GT(alone, 4);
  EXPECT_LT(bytes_per(kAll, [&] { ask(kClients); }), alone + 1);
}

TEST_F(HostMemory, OfALargePictureThatIsPaintedSmall) {
  EXPECT_LT(of_request(large_request(), bytes_per), kMost);
  ImageRequest request = large_request();
  request.mask_image = io::encode_png(band(900, 1000));
  EXPECT_LT(of_request(request, bytes_per), kMost);
}

TEST_F(HostMemory, OfAResizedPicture) {
  const io::Pixels large = noise(kWidth, kHeight, 3), small = noise(200, 100, 3);
  EXPECT_LT(bytes_per(kPixels, [&] { io::resized(large, 64, 64); }), 1.5);
  EXPECT_LT(bytes_per(kPixels, [&] { io::resized(small, kWidth, kHeight); }), 3.5);
}

// Besides the file itself.
TEST_F(HostMemory, OfAPngFile) {
  const io::Pixels picture = noise(kWidth, kHeight, 3);
  EXPECT_LT(bytes_per(kPixels, [&] { io::encode_png(picture); }), 4.5);
}

// Doubles each pixel along both axes.
class Doubling final : public models::Upscaler {
 public:
  int64_t scale() const override { return 2; }
  int64_t side_step() const override { return 1; }
  Tensor operator()(const Tensor& x, const models::Between&) const override {
    const int64_t height = x.dim(1), width = x.dim(2);
    const std::vector<float> values = x.to_host<float>();
    std::vector<float> out;
    out.reserve(values.size() * 4);
    for (int64_t i = 0; i < 4 * height * width; ++i) {
      const int64_t at = i / (2 * width) / 2 * width + i % (2 * width) / 2;
      out.insert(out.end(), values.begin() + at * 3, values.begin() + at * 3 + 3);
    }
    return from_host<float>(out, {1, 2 * height, 2 * width, 3}, x.device());
  }
};

// Finished rows of tiles are kept as bytes.
TEST_F(HostMemory, OfAnEnlargedPicture) {
  const io::Pixels small = noise(kHeight, kWidth / 2, 3);
  const ImageSource source = fake_source(half_noise);
  io::Pixels large;
  const auto enlarge = [&] {
    large = upscaled(Doubling(), small, *source.device, {.tile = 64, .overlap = 16});
  };
  EXPECT_LT(bytes_per(4.0 * kHeight * kHeight, enlarge), 3 + 5);
  EXPECT_EQ(large.values, io::resized(small, 2 * kHeight, kWidth, io::Resampler::nearest).values);
}

// Of the larger pass: 12 bytes for three floats a pixel, 3 for the picture that they come from or
// become, and 1 for latents and the smaller picture.
TEST_F(HostMemory, OfASecondPass) {
  constexpr int32_t kSide = 1024;
  for (const char* upscaler : {"Latent", "Lanczos", "Nearest", "made-x2"}) {
    ImageSource source = fake_source(half_noise);
    source.upscalers.push_back({"made-x2", std::make_unique<Doubling>()});
    fill_model_info(source, "");
    const auto engine = make_image_engine(std::move(source), {.warm_up = false});
    auto sink = std::make_shared<ImageRecorder>();
    ImageRequest request;
    request.prompt = "x";
    request.steps = 1;
    request.width = request.height = kSide / 2;
    request.hires = HiresFix{.scale = 2, .strength = 1, .upscaler = upscaler};
    EXPECT_LT(bytes_per(double{kSide} * kSide,
                        [&] {
                          engine->submit(request, sink);
                          ASSERT_TRUE(sink->wait());
                        }),
              kMost)
        << upscaler;
    ASSERT_EQ(sink->images.size(), 1u) << sink->failures.size();
    EXPECT_EQ(sink->images[0].width, kSide);
  }
}

// Three floats a pixel and their weight; when these grow to their size, half of the floats again,
// and a tile, which has a quarter.
TEST_F(HostMemory, OfTiles) {
  constexpr int32_t kSide = 1024;
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  auto sink = std::make_shared<ImageRecorder>();
  ImageRequest request;
  request.prompt = "x";
  request.steps = 1;
  request.width = request.height = kSide;
  request.tiled_vae = true;
  EXPECT_LT(bytes_per(double{kSide} * kSide,
                      [&] {
                        engine->submit(request, sink);
                        ASSERT_TRUE(sink->wait());
                      }),
            12 + 4 + 6 + 3 + 0.5);
  ASSERT_EQ(sink->images.size(), 1u);
}

// Of a narrow picture the second pass sees a part that has a thousandth of the whole, which would
// take 3072 bytes a pixel of the part. The weights of its 65536 rows take some 40.
TEST_F(HostMemory, OfASecondPassOfAnotherShape) {
  constexpr int32_t kLong = 2048, kShort = 64;
  for (const char* upscaler : {"Lanczos", "Nearest"}) {
    const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
    auto sink = std::make_shared<ImageRecorder>();
    ImageRequest request;
    request.prompt = "x";
    request.steps = 1;
    request.width = kShort;
    request.height = kLong;
    request.hires = HiresFix{.width = kLong, .height = kShort, .strength = 1, .upscaler = upscaler};
    EXPECT_LT(bytes_per(double{kLong} * kShort,
                        [&] {
                          engine->submit(request, sink);
                          ASSERT_TRUE(sink->wait());
                        }),
              5 * kMost)
        << upscaler;
    ASSERT_EQ(sink->images.size(), 1u);
  }
}

// Three bytes for each control and each pixel that a pass reads; beside these the file and the sent
// picture, of four each, and one for rows of floats.
TEST_F(HostMemory, OfControls) {
  const test::ImageFolder folder("sd1"), net("steer");
  std::filesystem::copy(test::image_data("tokenizer"), folder.path() / "tokenizer");
  const ImageSource source = load_image_source(
      folder.path(),
      {.device = fake_source(half_noise).device, .control_nets = {{net.path(), {}}}});
  ImageRequest request;
  request.width = kWidth / 2;
  request.height = kHeight / 2;
  const std::string sheer = io::encode_png(noise(kWidth, kHeight, 4));
  for (const size_t controls : {1, 2, 8}) {
    request.controls.assign(controls, {.name = "", .image = sheer});
    const auto work = [&] { resolve(source, request); };
    request.hires = HiresFix{.scale = 2};
    const double count = static_cast<double>(controls);
    EXPECT_LT(bytes_per(kPixels, work), 3 * 1.25 * count + 2 * 4 + 1) << controls;
    request.hires.reset();
    EXPECT_LT(bytes_per(kPixels, work), 3 * 0.25 * count + 2 * 4 + 1) << controls;
  }
}

}  // namespace
}  // namespace rbee::engine
