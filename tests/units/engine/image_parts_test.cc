#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/image/decode.h"
#include "rbee/engine/image/guide.h"
#include "rbee/engine/image/latents.h"
#include "rbee/engine/image/mosaic.h"
#include "rbee/engine/image/noise.h"
#include "rbee/engine/image/second_pass.h"
#include "rbee/engine/image/settings.h"
#include "rbee/io/image/png.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

Device& device() {
  static const ImageSource source = fake_source(half_noise);
  return *source.device;
}

io::Pixels uniform(int32_t width, int32_t height, std::vector<uint8_t> pixel) {
  io::Pixels out{.width = width,
                 .height = height,
                 .channels = static_cast<int32_t>(pixel.size()),
                 .values = {}};
  for (int i = 0; i < width * height; ++i) {
    out.values.insert(out.values.end(), pixel.begin(), pixel.end());
  }
  return out;
}

TEST(Canvas, ResizingKeepsColoursAndEdges) {
  const io::Pixels same = resized(uniform(13, 7, {10, 120, 250}), 40, 3);
  EXPECT_EQ(same.width, 40);
  EXPECT_EQ(same.height, 3);
  EXPECT_EQ(same.values, uniform(40, 3, {10, 120, 250}).values);
  io::Pixels halves = uniform(32, 4, {0, 0, 0});
  for (size_t i = 0; i < halves.values.size(); ++i) halves.values[i] = i % 96 < 48 ? 0 : 255;
  const io::Pixels small = resized(halves, 8, 1);
  EXPECT_LT(small.values[1 * 3], 20);
  EXPECT_GT(small.values[6 * 3], 235);
}

TEST(Canvas, MasksAreReadByOpacityOrBrightness) {
  EXPECT_THAT(mask_of(uniform(2, 1, {255, 255, 255}), {}).values, ElementsAre(255, 255));
  EXPECT_THAT(mask_of(uniform(2, 1, {90, 90, 90}), {}).values, ElementsAre(0, 0));
  EXPECT_THAT(mask_of(uniform(2, 1, {90, 90, 90}), {.invert = true}).values, ElementsAre(255, 255));
  EXPECT_THAT(mask_of(uniform(2, 1, {255, 255, 255, 255}), {}).values, ElementsAre(255, 255));
  EXPECT_THAT(mask_of(uniform(2, 1, {255, 255, 255, 0}), {}).values, ElementsAre(255, 255));
  io::Pixels part = uniform(2, 1, {255, 255, 255, 255});
  part.values[7] = 0;  // opaque white stays, the transparent pixel is repainted
  EXPECT_THAT(mask_of(part, {}).values, ElementsAre(0, 255));
}

// A1111's create_binary_mask: alpha above 128 if any is below 255, else brightness.
TEST(Canvas, MasksOfA1111AreOpaque) {
  io::Pixels part = uniform(3, 1, {0, 0, 0, 255});
  part.values[7] = 128;
  part.values[11] = 129;
  EXPECT_THAT(mask_of(part, {.opaque = true}).values, ElementsAre(255, 0, 255));
  EXPECT_THAT(mask_of(part, {.opaque = true, .invert = true}).values, ElementsAre(0, 255, 0));
  EXPECT_THAT(mask_of(uniform(1, 1, {0, 0, 0, 255}), {.opaque = true}).values, ElementsAre(0));
  EXPECT_THAT(mask_of(uniform(1, 1, {255, 255, 255}), {.opaque = true}).values, ElementsAre(255));
}

// The values are Pillow's, by Image.paste() with the picture as its own mask.
TEST(Canvas, TransparentPartsBecomeWhite) {
  const io::Pixels sheer{
      .width = 3,
      .height = 1,
      .channels = 4,
      .values = {9, 8, 7, 0, 10, 200, 90, 255, 10, 200, 90, 100},
  };
  const io::Pixels found = on_white(sheer);
  EXPECT_EQ(found.channels, 3);
  EXPECT_THAT(found.values, ElementsAre(255, 255, 255, 10, 200, 90, 159, 233, 190));
  ImageRequest request;
  request.width = request.height = 64;
  request.init_image = io::encode_png(
      {.width = 64, .height = 64, .channels = 4, .values = std::vector<uint8_t>(64 * 64 * 4)});
  ImageSource source = fake_source(half_noise);
  EXPECT_EQ(resolve(source, request).init->values[0], 0);
  request.init_on_white = true;
  EXPECT_EQ(resolve(source, request).init->values[0], 255);
}

// A step's edge is the distribution function of a Gaussian, here of deviation 2.
TEST(Canvas, BlurringIsAGaussian) {
  Mask mask{.width = 40, .height = 30, .values = {}};
  for (int i = 0; i < 40 * 30; ++i) mask.values.push_back(i % 40 < 20 ? 0 : kAllPainted);
  const Mask soft = blurred(mask, 2);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      const double wanted = 255 * 0.5 * std::erfc((19.5 - x) / 2 / std::numbers::sqrt2);
      ASSERT_NEAR(soft.values[static_cast<size_t>(y * 40 + x)], wanted, 1.5) << x << ", " << y;
    }
  }
  EXPECT_EQ(blurred(mask, 0).values, mask.values);
}

// Skips rows without any mask.
TEST(Canvas, BlurringReachesRowsAroundAMask) {
  Mask mask{.width = 9, .height = 200, .values = std::vector<uint8_t>(1800)};
  std::fill_n(mask.values.begin() + 100 * 9, 9 * 10, kAllPainted);
  const Mask soft = blurred(mask, 3);
  const auto at = [&](int y) { return int{soft.values[static_cast<size_t>(y * 9 + 4)]}; };
  EXPECT_EQ(at(90), 0);
  EXPECT_GT(at(98), 0);
  EXPECT_GT(at(104), 200);
  for (int k = 0; k < 20; ++k) EXPECT_EQ(at(104 - k), at(105 + k)) << k;
  EXPECT_EQ(at(120), 0);
}

TEST(Canvas, MasksOfLatentsAreTheUpperLeftPixels) {
  Mask mask{.width = 16, .height = 8, .values = std::vector<uint8_t>(128)};
  mask.values[8] = kAllPainted;
  const Tensor latent = latent_mask(mask, 8, device());
  EXPECT_EQ(latent.shape(), (Shape{1, 1, 2, 1}));
  EXPECT_THAT(latent.to_host<float>(), ElementsAre(0, 1));
}

TEST(Canvas, PixelsOfMasksAreChannels) {
  const ImageSource source = fake_source(half_noise);
  const Mask mask{4, 2, {51, 102, 153, 204, 255, 0, 51, 102}};
  const Tensor found = mask_pixels(mask, 2, *source.device);
  EXPECT_EQ(found.shape(), (Shape{1, 1, 2, 4}));
  EXPECT_THAT(found.to_host<float>(), ElementsAre(0.2f, 0.4f, 1, 0, 0.6f, 0.8f, 0.2f, 0.4f));
}

TEST(Canvas, EnlargingAlignsCentres) {
  const std::vector<float> row = {0, 4};
  EXPECT_THAT(enlarged(row, {1, 1, 2, 1}, 1, 4), ElementsAre(0, 1, 3, 4));
  const std::vector<float> two = {1, 2, 3, 4,
                                  5, 6, 7, 8};  // two images of 2 x 1 pixels, 2 channels
  EXPECT_THAT(enlarged(two, {2, 2, 1, 2}, 2, 1), Pointwise(FloatNear(1e-6f), two));
  EXPECT_THAT(enlarged(row, {1, 1, 2, 1}, 1, 5, LatentFilter::nearest_exact),
              ElementsAre(0, 0, 4, 4, 4));
}

// By hand from PyTorch's formulas: cubic weights of -0.75, and of -0.5 where it is antialiased.
TEST(Latents, AreEnlargedByTheFiltersOfAutomatic1111) {
  const auto expect = [](const std::vector<float>& row, int64_t to, LatentFilter filter,
                         const std::vector<float>& wanted) {
    const auto count = static_cast<int64_t>(row.size());
    EXPECT_THAT(enlarged(row, {1, 1, count, 1}, 1, to, filter),
                Pointwise(FloatNear(1e-5f), wanted));
    EXPECT_THAT(enlarged(row, {1, count, 1, 1}, to, 1, filter),
                Pointwise(FloatNear(1e-5f), wanted));
  };
  const std::vector<float> two = {0, 4};
  expect(two, 4, LatentFilter::bilinear_antialiased, {0, 1, 3, 4});
  expect(two, 4, LatentFilter::bicubic, {-0.421875f, 0.90625f, 3.09375f, 4.421875f});
  expect(two, 4, LatentFilter::bicubic_antialiased, {-0.352941f, 0.828571f, 3.171429f, 4.352941f});
  expect(two, 5, LatentFilter::nearest, {0, 0, 0, 4, 4});
  // Downscaling: the plain filter skips values, the antialiased one uses them all.
  const std::vector<float> six = {0, 6, 0, 0, 6, 0};
  expect(six, 2, LatentFilter::bilinear, {6, 6});
  expect(six, 2, LatentFilter::bilinear_antialiased, {2.25f, 2.25f});
}

TEST(SecondPass, IsAsLargeAsAskedFor) {
  const auto size = [](const HiresFix& hires) {
    const Size out = second_size(hires, {512, 768}, 8);
    return std::pair(out.width, out.height);
  };
  EXPECT_EQ(size({.scale = 1.5f}), std::pair(768, 1152));
  EXPECT_EQ(size({.scale = 1.1f}), std::pair(560, 848));
  EXPECT_EQ(size({.width = 1024}), std::pair(1024, 1536));
  EXPECT_EQ(size({.height = 1000}), std::pair(664, 1000));
  EXPECT_EQ(size({.width = 1024, .height = 1024}), std::pair(1024, 1024));
}

// FLUX and Stable Diffusion 3 need multiples of 16.
TEST(SecondPass, IsAsLargeAsTheModelTakes) {
  ImageSource source = fake_source(half_noise);
  source.side_step = 16;
  ImageRequest request;
  request.width = request.height = 768;
  const auto size = [&](const HiresFix& hires) {
    request.hires = hires;
    const ImageSettings settings = resolve(source, request);
    return std::pair(settings.final_width, settings.final_height);
  };
  EXPECT_EQ(size({.scale = 1.3f}), std::pair(992, 992));
  request.width = 512;
  EXPECT_EQ(size({.height = 1072}), std::pair(720, 1072));
}

TEST(SecondPass, CutsOffWhatIsBeyondTheRatio) {
  const Cover wide = cover({64, 96}, {128, 128});
  EXPECT_EQ(wide.whole.width, 128);
  EXPECT_EQ(wide.whole.height, 192);
  EXPECT_EQ(wide.part.top, 32);
  EXPECT_EQ(wide.part.left, 0);
  EXPECT_EQ(wide.part.height, 128);
  const Cover same = cover({64, 96}, {96, 144});
  EXPECT_EQ(same.whole.height, 144);
  EXPECT_EQ(same.part.top, 0);
}

TEST(SecondPass, KnowsTheNamesOfAutomatic1111) {
  for (const char* known :
       {"Latent", "Latent (antialiased)", "Latent (bicubic)", "Latent (bicubic antialiased)",
        "Latent (nearest)", "Latent (nearest-exact)", "Lanczos", "Nearest"}) {
    EXPECT_EQ(name(parse_upscaler(known, {})), known);
  }
  EXPECT_EQ(parse_upscaler("latent (nearest-exact)", {}), UpscalerKind::latent_nearest_exact);
  EXPECT_EQ(parse_upscaler("", {}), UpscalerKind::latent);
  EXPECT_EQ(parse_upscaler("lanczos", {}), UpscalerKind::lanczos);
  EXPECT_EQ(parse_upscaler("None", {}), UpscalerKind::lanczos);
  harness::expect_error("hires.upscaler", "R-ESRGAN 4x+", "Latent (nearest-exact), Lanczos",
                        [] { static_cast<void>(parse_upscaler("R-ESRGAN 4x+", {})); });
}

TEST(Canvas, ValuesThatAreNotFiniteAreNoPicture) {
  const std::vector<float> bad = {0, NAN, 0};
  try {
    static_cast<void>(pixels_of(bad, 1, 1));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("bf16"));
  }
  const std::vector<float> good = {-2, 0, 1};
  EXPECT_THAT(pixels_of(good, 1, 1).values, ElementsAre(0, 128, 255));
}

TEST(Decode, TilesCoverEverythingOnce) {
  EXPECT_THAT(tile_starts(64, 64, 16), ElementsAre(0));
  EXPECT_THAT(tile_starts(100, 64, 16), ElementsAre(0, 36));
  EXPECT_THAT(tile_starts(160, 64, 16), ElementsAre(0, 48, 96));
}

// The fake VAE reads one latent at a time, so tiles give the same picture.
TEST(Decode, TilesGiveTheWholePicture) {
  const FakeVae vae;
  diffusion::TorchNormals normals(3);
  const Tensor latent = normal_latent(normals, {1, 20, 29, 4}, device());
  const io::Pixels whole = decode_latent(vae, latent);
  const io::Pixels tiled = decode_latent(vae, latent, {.tiled = true, .tile = 12, .overlap = 4});
  ASSERT_EQ(whole.values.size(), tiled.values.size());
  for (size_t i = 0; i < whole.values.size(); ++i) {
    ASSERT_NEAR(whole.values[i], tiled.values[i], 1) << i;
  }
}

// A pixel is the sum of the nine latents around it, in both directions.
class BlurringVae final : public models::Vae {
 public:
  const models::VaeInfo& info() const override { return info_; }
  models::LatentDistribution encode(const Tensor& image, Circular circular) const override {
    return {blurred(image, 4, circular), {}};
  }
  Tensor decode(const Tensor& latent, const models::Between&, Circular circular) const override {
    return blurred(latent, 3, circular);
  }

 private:
  static Tensor blurred(const Tensor& x, int64_t out, Circular circular) {
    Tensor weight = empty({out, 3, 3, x.dim(3)}, DType::f32, device());
    fill_(weight, 1);
    return image_conv(x, {.weight = weight, .bias = {}}, padded(1, circular));
  }

  models::VaeInfo info_{.scale = 1};
};

// The largest difference within `beside` pixels of the ends of a row of `width` pixels.
float at_ends(std::span<const float> a, std::span<const float> b, size_t width, size_t channels,
              size_t beside) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t x = i / channels % width;
    if (x < beside || x >= width - beside) worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

// With circular padding, the ends of a row are in the middle of tiles.
TEST(Decode, TilesGoRoundWithThePicture) {
  const BlurringVae vae;
  diffusion::TorchNormals normals(3);
  const Tensor latent = normal_latent(normals, {1, 6, 20, 4}, device());
  const Tensor picture = normal_latent(normals, {1, 6, 20, 3}, device());
  TileOptions options{.tiled = true, .tile = 12, .overlap = 4, .between = {}, .circular = {}};
  const auto decoded = [&] { return decode_in_tiles(vae, latent, options); };
  const auto encoded = [&] { return encode_in_tiles(vae, picture, options).mean.to_host<float>(); };
  const Circular round{.x = true, .y = true};
  const auto whole = vae.decode(latent, {}, round).to_host<float>();
  const auto read = vae.encode(picture, round).mean.to_host<float>();
  EXPECT_GT(at_ends(decoded(), whole, 20, 3, 3), 0.5f);
  EXPECT_GT(at_ends(encoded(), read, 20, 4, 3), 0.5f);
  options.circular = round;
  EXPECT_LT(at_ends(decoded(), whole, 20, 3, 3), 1e-5f);
  EXPECT_LT(at_ends(encoded(), read, 20, 4, 3), 1e-5f);
}

// The fake VAE is linear: the preview is its picture, one pixel a latent.
TEST(Decode, PreviewsAreFittedToTheVae) {
  const FakeVae vae;
  const PreviewMap map(vae, device());
  diffusion::TorchNormals normals(3);
  const Tensor latent = normal_latent(normals, {1, 4, 6, 4}, device());
  const io::Pixels preview = map(latent.to_host<float>(), 6, 4);
  const io::Pixels whole = decode_latent(vae, latent);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6 * 3; ++x) {
      const auto at = static_cast<size_t>((y * 8 * 48 + x / 3 * 8) * 3 + x % 3);
      ASSERT_NEAR(preview.values[static_cast<size_t>(y * 18 + x)], whole.values[at], 2);
    }
  }
}

TEST(Decode, SolvesSystemsThatNeedPivots) {
  EXPECT_THAT(solved({0, 2, 4, 0}, {6, 8}, 2), ElementsAre(2, 3));
}

TEST(Noise, HasTheOrderOfChannelsFirst) {
  diffusion::TorchNormals normals(11);
  diffusion::TorchNormals plain(11);
  std::vector<float> drawn(24);
  plain.fill(drawn);
  const auto latent = normal_latent(normals, {1, 2, 3, 4}, device()).to_host<float>();
  EXPECT_EQ(latent[0 * 4 + 1], drawn[6]);
  EXPECT_EQ(latent[5 * 4 + 3], drawn[3 * 6 + 5]);
}

// By torch 2.15: randn(2, 3, 4) of seeds 1 and 2, AUTOMATIC1111's formula, channels last.
TEST(Noise, VariesAsInAutomatic1111) {
  const std::vector<float> wanted = {
      -1.56129f, 0.05922f,  -0.24916f, -1.40980f, -1.18751f, -0.51862f, -1.53007f, -0.18302f,
      -0.51737f, -0.82777f, 0.02446f,  -0.21813f, -1.36661f, 0.19523f,  -1.21066f, 1.42692f,
      0.04893f,  -0.26526f, 1.51648f,  1.03694f,  1.07078f,  -1.44499f, -0.09908f, 2.08881f};
  const Shape shape{1, 3, 4, 2};
  BatchNoise varied(NoiseSource::torch, {{1, 2, 0.3f}});
  EXPECT_THAT(varied.draw_start(shape, device()).to_host<float>(),
              Pointwise(FloatNear(2e-5f), wanted));
  const auto of = [&](NoiseSeed seed) {
    return BatchNoise(NoiseSource::philox, {seed}).draw_start(shape, device()).to_host<float>();
  };
  EXPECT_EQ(of({1, 2, 0}), of({1, 9, 0}));
  EXPECT_THAT(of({1, 2, 1}), Pointwise(FloatNear(1e-5f), of({2, 0, 0})));
  EXPECT_THAT(of({1, 1, 0.5f}), Pointwise(FloatNear(1e-6f), of({1, 0, 0})));
}

// From torch 2.15 with AUTOMATIC1111's formula: randn(2, height, width) placed in the middle of
// randn(2, 3, 4) of seed 1, channels last.
TEST(Noise, KeepsTheMiddleOfAnotherSize) {
  const std::vector<float> tall = {-1.52560f, 0.13937f,  -0.10017f, -0.79844f, -0.60919f, 0.33573f,
                                   -1.60948f, -0.29935f, -0.10017f, -0.79844f, -0.97977f, 0.27533f,
                                   -1.60910f, 1.71630f,  -1.60910f, 1.71630f,  0.43914f,  -0.05614f,
                                   1.17120f,  0.91070f,  1.76743f,  -1.39239f, -0.09536f, 2.68909f};
  const std::vector<float> wide = {-0.65398f, 1.87935f,  -1.60948f, -0.07213f, -0.10017f, 0.15777f,
                                   -1.60948f, -0.29935f, 0.30372f,  2.68909f,  -0.77731f, -0.11102f,
                                   -0.25146f, 0.29274f,  -1.60910f, 1.71630f,  0.43914f,  -0.05614f,
                                   1.17120f,  0.91070f,  1.76743f,  -1.39239f, -0.09536f, 2.68909f};
  const auto drawn = [&](int64_t height, int64_t width) {
    BatchNoise noise(NoiseSource::torch, {{.seed = 1, .height = height, .width = width}});
    return noise.draw_start({1, 3, 4, 2}, device()).to_host<float>();
  };
  EXPECT_THAT(drawn(6, 2), Pointwise(FloatNear(2e-5f), tall));
  EXPECT_THAT(drawn(2, 7), Pointwise(FloatNear(2e-5f), wide));
  EXPECT_EQ(drawn(3, 4), drawn(0, 0));
}

TEST(Noise, GoesOnWithAnotherSeedBehindTheStart) {
  const Shape shape{1, 3, 4, 2};
  BatchNoise plain(NoiseSource::philox, {{.seed = 5}}), other(NoiseSource::philox, {{.seed = 36}});
  BatchNoise moved(NoiseSource::philox, {{.seed = 5, .delta = 31}});
  EXPECT_EQ(moved.draw_start(shape, device()).to_host<float>(),
            plain.draw_start(shape, device()).to_host<float>());
  const auto first = other.draw(shape, device()).to_host<float>();
  EXPECT_EQ(moved.draw(shape, device()).to_host<float>(), first);
  EXPECT_NE(plain.draw(shape, device()).to_host<float>(), first);
}

TEST(Start, FollowsTheRules) {
  const auto check_start = [](StrengthRule rule, float strength, int32_t levels, int32_t first) {
    const Start start = start_of(rule, 20, strength, false);
    EXPECT_EQ(start.levels, levels);
    EXPECT_EQ(start.first, first);
  };
  check_start(StrengthRule::part, 0.75f, 20, 5);
  check_start(StrengthRule::part, 1, 20, 0);
  check_start(StrengthRule::part, 0, 20, 19);
  check_start(StrengthRule::a1111, 0.75f, 20, 4);
  check_start(StrengthRule::a1111, 1, 20, 0);
  check_start(StrengthRule::all, 0.5f, 40, 20);
  check_start(StrengthRule::all, 1, 20, 0);
  check_start(StrengthRule::all, 0, 1000, 980);
}

// Python's int(100 * 0.29) is 28, and 100 - 28.999... is 71.000...
TEST(Start, CountsWithTheDigitsThatWereSent) {
  EXPECT_EQ(start_of(StrengthRule::part, 100, 0.29f, false).first, 72);
  EXPECT_EQ(start_of(StrengthRule::part, 100, 0.29f, true).first, 71);
  EXPECT_EQ(start_of(StrengthRule::a1111, 100, 0.29f, false).first, 71);
}

TEST(Start, RoundsTheStepsOfFlowsUp) {
  EXPECT_EQ(start_of(StrengthRule::part, 6, 0.55f, false).first, 3);
  EXPECT_EQ(start_of(StrengthRule::part, 6, 0.55f, true).first, 2);
  EXPECT_EQ(start_of(StrengthRule::part, 6, 0, true).first, 5);
  EXPECT_EQ(start_of(StrengthRule::part, 6, 1, true).first, 0);
}

// By Python's json.dumps, as A1111 writes such values.
TEST(Settings, HaveNamesWithCommasBetweenQuotes) {
  ImageSource source = fake_source(half_noise);
  ImageRequest request;
  request.seed_delta = 31;
  source.info.id = "ink, \"wide\": a\\b";
  const std::string text = parameters_text(request, resolve(source, request), source.info, 0);
  EXPECT_THAT(text, HasSubstr(R"(, Model: "ink, \"wide\": a\\b", RNG: CPU)"));
  EXPECT_EQ(parse_parameters(text).seed_delta, 31);
  EXPECT_EQ(parse_parameters("a\nSteps: 4, Eta DDIM: 0.5").eta, 0.5f);
}

// The model's own size is 64 x 64.
TEST(Settings, OfPhotographsKeepTheirRatio) {
  ImageSource source = fake_source(half_noise);
  const auto size_of = [&](int32_t width, int32_t height, ImageRequest request = {}) {
    const std::vector<uint8_t> grey = {90, 90, 90};
    request.init_image = io::encode_png(uniform(width, height, grey));
    const ImageSettings found = resolve(source, request);
    EXPECT_EQ(found.init->width, found.width);
    return std::pair(found.width, found.height);
  };
  EXPECT_EQ(size_of(2048, 70), std::pair(2048, 64));  // the largest size that models draw
  EXPECT_EQ(size_of(2100, 1050), std::pair(128, 64));
  EXPECT_EQ(size_of(1050, 2100), std::pair(64, 128));
  EXPECT_EQ(size_of(4200, 70), std::pair(2048, 64));
  ImageRequest request;
  request.width = 256;
  EXPECT_EQ(size_of(2100, 1050, request), std::pair(256, 128));
  EXPECT_EQ(size_of(128, 80, request), std::pair(256, 80));
  source.side_step = 16;
  EXPECT_EQ(size_of(200, 136), std::pair(192, 128));
}

TEST(Settings, OfA1111HaveItsSchedules) {
  const ImageSource source = fake_source(half_noise);
  ImageRequest request;
  request.sampler = "DPM++ 2M";
  EXPECT_EQ(resolve(source, request).schedule, diffusion::Schedule::automatic);
  request.noise_source = NoiseSource::philox;
  EXPECT_EQ(resolve(source, request).schedule, diffusion::Schedule::karras);
  request.sampler = "Euler a";
  request.schedule = "Automatic";
  EXPECT_EQ(resolve(source, request).schedule, diffusion::Schedule::normal);
  // range(0, 1000, 1000 // steps) + 1, whatever spacing the configuration names.
  for (const char* sampler : {"DDIM", "DDIM CFG++", "PLMS", "UniPC"}) {
    request.sampler = sampler;
    EXPECT_EQ(resolve(source, request).schedule, diffusion::Schedule::ddim_uniform) << sampler;
  }
  request.schedule = "Simple";
  EXPECT_EQ(resolve(source, request).schedule, diffusion::Schedule::simple);
}

TEST(Loras, OfFoldersOfPeftGoByTheFolder) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "rbee_lora_names";
  fs::create_directories(folder / "a" / "peft");
  for (const char* file : {"style.safetensors", "a/plain.safetensors", "a/peft/adapter_config.json",
                           "a/peft/adapter_model.safetensors"}) {
    std::ofstream(folder / file) << "x";
  }
  EXPECT_THAT(LoraFolder(folder).names(), ElementsAre("a/peft", "a/plain", "style"));
  EXPECT_EQ(LoraFolder(folder).find("a/peft"), folder / "a" / "peft" / "adapter_model.safetensors");
  EXPECT_EQ(LoraFolder(folder).find("a/plain"), folder / "a" / "plain.safetensors");
  EXPECT_THROW(LoraFolder(folder).find("a"), Error);
  fs::remove_all(folder);
}

// As in AUTOMATIC1111: a LoRA is found by file name in any sub-folder (the last of several), or by
// its trainer's name, which picture texts use.
TEST(Loras, GoByTheirOwnNamesInAnyFolder) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "rbee_lora_titles";
  fs::create_directories(root / "a" / "peft");
  fs::create_directories(root / "b");
  const auto write = [&](const char* file, const std::string& title) {
    const std::string header = cat(R"({"__metadata__":{"ss_output_name":")", title, R"("}})");
    std::string length;
    for (size_t i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
    std::ofstream(root / file) << length << header;
  };
  write("a/in_sub.safetensors", "MyStyle");
  write("a/twice.safetensors", "Both");
  write("b/twice.safetensors", "Both");
  for (const char* file :
       {"a/peft/adapter_config.json", "a/peft/adapter_model.safetensors", "broken.safetensors"}) {
    std::ofstream(root / file) << "x";
  }
  const LoraFolder folder(root);
  EXPECT_EQ(folder.find("in_sub"), root / "a" / "in_sub.safetensors");
  EXPECT_EQ(folder.find("in_sub.safetensors"), root / "a" / "in_sub.safetensors");
  EXPECT_EQ(folder.find("MyStyle"), root / "a" / "in_sub.safetensors");
  EXPECT_EQ(folder.find("twice"), root / "b" / "twice.safetensors");
  EXPECT_EQ(folder.find("IN_Sub"), root / "a" / "in_sub.safetensors");
  EXPECT_EQ(folder.find("a/twice"), root / "a" / "twice.safetensors");
  EXPECT_EQ(folder.find("peft"), root / "a" / "peft" / "adapter_model.safetensors");
  harness::expect_error("loras.path", "Both", "a/twice, b/twice", [&] { folder.find("Both"); });
  harness::expect_error("loras.path", "name", "control characters",
                        [&] { folder.find(std::string("a/twice.safetensors\0x", 21)); });
  std::vector<std::string> aliases;
  for (const LoraName& each : folder.list()) aliases.push_back(each.alias);
  EXPECT_THAT(aliases, ElementsAre("MyStyle", "a/peft", "a/twice", "b/twice", "broken"));
  // A file that was replaced is read again.
  write("a/in_sub.safetensors", "Other title");
  EXPECT_EQ(folder.find("Other title"), root / "a" / "in_sub.safetensors");
  try {
    folder.find("MyStyle");
    ADD_FAILURE() << "an old title is found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_STREQ(error.what(), "loras.path: there is no \"MyStyle\" in the folder of LoRAs");
  }
  fs::remove_all(root);
}

// A path that a system call rejects is no file either: a name too long, a link to itself.
TEST(Loras, ThatCannotBeAreNotThere) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "rbee_no_loras";
  fs::create_directories(folder);
  std::ofstream(folder / "style.safetensors") << "x";
  fs::create_symlink("ring.safetensors", folder / "ring.safetensors");
  EXPECT_THAT(LoraFolder(folder).names(), ElementsAre("style"));
  for (const std::string& name : {std::string("ring"), std::string(300, 'a')}) {
    try {
      LoraFolder(folder).find(name);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::not_found);
    }
  }
  fs::remove_all(folder);
}

TEST(Guide, RescalesByTheDeviation) {
  const std::vector<float> values = {1, -1, 3, -3, 2, 2, 6, 6};
  const std::vector<float> like = {2, -2, 6, -6, 1, 1, 3, 3};
  const Tensor x = from_host<float>(values, {2, 2, 2, 1}, device());
  const Tensor target = from_host<float>(like, {2, 2, 2, 1}, device());
  EXPECT_THAT(with_deviation_of(x, target, 1).to_host<float>(),
              Pointwise(FloatNear(1e-5f), {2.f, -2.f, 6.f, -6.f, 1.f, 1.f, 3.f, 3.f}));
  EXPECT_THAT(with_deviation_of(x, target, 0.5).to_host<float>()[0], FloatNear(1.5f, 1e-5f));
}

}  // namespace
}  // namespace rbee::engine
