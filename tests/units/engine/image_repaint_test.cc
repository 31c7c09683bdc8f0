#include "rbee/engine/image/repaint.h"

#include <gtest/gtest.h>

#include "rbee/engine/image/pipeline.h"
#include "rbee/engine/image/settings.h"
#include "rbee/io/image/png.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

io::Pixels halves(int32_t width, int32_t height) {
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  for (int32_t i = 0; i < width * height; ++i) {
    const bool left = i % width < width / 2;
    out.values.insert(out.values.end(), {static_cast<uint8_t>(left ? 200 : 10), 40,
                                         static_cast<uint8_t>(left ? 10 : 200)});
  }
  return out;
}

Mask box(int32_t width, int32_t height, const Region& region) {
  Mask out{width, height, {}};
  for (int32_t i = 0; i < width * height; ++i) {
    const int32_t x = i % width - region.left, y = i / width - region.top;
    const bool inside = x >= 0 && x < region.width && y >= 0 && y < region.height;
    out.values.push_back(inside ? kAllPainted : 0);
  }
  return out;
}

Mask everything(const Region& region) {
  return box(region.width, region.height, {0, 0, region.width, region.height});
}

void expect_region(const Region& got, const Region& wanted) {
  EXPECT_EQ(got.left, wanted.left);
  EXPECT_EQ(got.top, wanted.top);
  EXPECT_EQ(got.width, wanted.width);
  EXPECT_EQ(got.height, wanted.height);
}

ImageRequest repaint(bool only) {
  ImageRequest out;
  out.prompt = "x";
  out.init_image = io::encode_png(halves(200, 120));
  io::Pixels mask{.width = 200, .height = 120, .channels = 3, .values = {}};
  for (const uint8_t value : box(200, 120, {100, 40, 20, 20}).values) {
    mask.values.insert(mask.values.end(), 3, value > 0 ? 255 : 0);
  }
  out.mask_image = io::encode_png(mask);
  out.mask_only = only;
  out.mask_padding = 4;
  return out;
}

TEST(Repaint, RegionsHaveTheRatioOfWhatIsPainted) {
  const Mask wide = box(100, 80, {40, 30, 20, 10});
  expect_region(region_around(wide, 0, 64, 64), {40, 25, 20, 20});
  expect_region(region_around(wide, 5, 64, 64), {35, 20, 30, 30});
  expect_region(region_around(wide, 5, 128, 64), {30, 25, 40, 20});
  // At the border, and past the picture's end.
  expect_region(region_around(box(100, 80, {0, 70, 30, 10}), 0, 64, 64), {0, 50, 30, 30});
  expect_region(region_around(box(100, 80, {0, 0, 100, 10}), 32, 64, 64), {0, 0, 100, 80});
  expect_region(region_around(box(100, 80, {0, 0, 0, 0}), 32, 64, 64), {0, 0, 100, 80});
}

// For a picture of 200 x 120 pixels with padding 3, as in AUTOMATIC1111's modules/masking.py: at
// each edge and corner the region moves inside and keeps its ratio.
TEST(Repaint, RegionsMoveIntoThePicture) {
  struct Case {
    Region mask;
    int32_t width, height;
    Region wanted;
  };
  const Case cases[] = {{{0, 0, 30, 12}, 64, 64, {0, 0, 33, 33}},
                        {{85, 0, 30, 12}, 64, 64, {82, 0, 36, 36}},
                        {{170, 0, 30, 12}, 64, 64, {167, 0, 33, 33}},
                        {{0, 54, 30, 12}, 64, 64, {0, 44, 33, 33}},
                        {{170, 54, 30, 12}, 64, 64, {167, 44, 33, 33}},
                        {{0, 108, 30, 12}, 64, 64, {0, 87, 33, 33}},
                        {{85, 108, 30, 12}, 64, 64, {82, 84, 36, 36}},
                        {{170, 108, 30, 12}, 64, 64, {167, 87, 33, 33}},
                        {{0, 0, 30, 12}, 96, 64, {0, 0, 33, 22}},
                        {{170, 54, 30, 12}, 96, 64, {167, 49, 33, 22}},
                        {{85, 108, 30, 12}, 96, 64, {82, 96, 36, 24}},
                        {{90, 0, 20, 120}, 96, 64, {10, 0, 180, 120}},
                        {{0, 0, 30, 12}, 64, 96, {0, 0, 33, 49}},
                        {{170, 0, 30, 12}, 64, 96, {167, 0, 33, 49}},
                        {{0, 54, 30, 12}, 64, 96, {0, 36, 33, 49}},
                        {{0, 108, 30, 12}, 64, 96, {0, 71, 33, 49}},
                        {{170, 108, 30, 12}, 64, 96, {167, 71, 33, 49}}};
  for (const Case& each : cases) {
    SCOPED_TRACE(cat(each.mask.left, ", ", each.mask.top, " for ", each.width, " x ", each.height));
    expect_region(region_around(box(200, 120, each.mask), 3, each.width, each.height), each.wanted);
  }
}

// As A1111: each mask is resized to the painted size.
TEST(Repaint, MasksOfAnotherSizeAreFitted) {
  const ImageSource source = fake_source(half_noise);
  io::Pixels small{.width = 50, .height = 60, .channels = 3, .values = {}};
  for (const uint8_t value : box(50, 60, {25, 20, 5, 10}).values) {
    small.values.insert(small.values.end(), 3, value > 0 ? 255 : 0);
  }
  for (const bool only : {false, true}) {
    ImageRequest request = repaint(only);
    request.mask_image = io::encode_png(small);
    const ImageSettings fitted = resolve(source, request), same = resolve(source, repaint(only));
    EXPECT_EQ(fitted.mask->width, same.mask->width);
    EXPECT_EQ(fitted.mask->height, same.mask->height);
    double apart = 0;
    for (size_t i = 0; i < same.mask->values.size(); ++i) {
      apart += std::abs(fitted.mask->values[i] - same.mask->values[i]);
    }
    EXPECT_LT(apart / kAllPainted / static_cast<double>(same.mask->values.size()), 0.03) << only;
  }
}

// A mask over the full width: no square around it fits in 200 x 120 pixels.
TEST(Repaint, PartsThatCannotHaveTheRatioAreNotStretched) {
  io::Pixels bands{.width = 200, .height = 120, .channels = 3, .values = {}};
  for (int32_t i = 0; i < 200 * 120; ++i) {
    const int32_t y = i / 200;
    bands.values.insert(bands.values.end(), 3, y < 40 ? 50 : y < 80 ? 150 : 250);
  }
  ImageRequest request = repaint(true);
  request.init_image = io::encode_png(bands);
  io::Pixels mask{.width = 200, .height = 120, .channels = 3, .values = {}};
  for (const uint8_t value : box(200, 120, {0, 50, 200, 20}).values) {
    mask.values.insert(mask.values.end(), 3, value > 0 ? 255 : 0);
  }
  request.mask_image = io::encode_png(mask);
  const ImageSource source = fake_source(half_noise);
  const ImageSettings settings = resolve(source, request);
  expect_region(settings.repainted.region, {0, 0, 200, 120});
  // 64 x 38 at row 13, so the mask covers 28.8 to 35.2.
  EXPECT_EQ(settings.init->values, fitted(bands, 64, 64, Fit::fill).values);
  for (const auto& [row, value] :
       {std::pair{27, 0}, std::pair{30, 255}, std::pair{34, 255}, std::pair{36, 0}}) {
    EXPECT_EQ(settings.mask->values[static_cast<size_t>(row) * 64 + 20], value) << row;
  }
  // Lanczos overshoots at the bands' edges.
  const Region& region = settings.repainted.region;
  const io::Pixels back = pasted(*settings.init, bands, region, everything(region));
  for (const auto& [row, value] : {std::pair{2, 50}, std::pair{36, 50}, std::pair{44, 150},
                                   std::pair{76, 150}, std::pair{84, 250}}) {
    EXPECT_NEAR(back.values[static_cast<size_t>(row * 200 + 100) * 3], value, 15) << row;
  }
}

// The region includes the soft edge.
TEST(Repaint, RegionsAreAroundSoftenedMasks) {
  ImageRequest request = repaint(true);  // the mask from 100 to 119 and 40 to 59
  request.mask_padding = 0;
  request.mask_blur = 4;
  const ImageSource source = fake_source(half_noise);
  const ImageSettings settings = resolve(source, request);
  const Region& region = settings.repainted.region;
  EXPECT_LE(region.left, 90);
  EXPECT_GE(region.left, 88);
  EXPECT_LE(region.top, 30);
  EXPECT_GE(region.left + region.width, 130);
  EXPECT_GE(region.top + region.height, 70);
  const Mask soft = blurred(box(200, 120, {100, 40, 20, 20}), 4);
  EXPECT_EQ(settings.repainted.share.values, cropped(soft, region).values);
  for (int32_t x = 0; x < region.left; ++x) {
    EXPECT_EQ(soft.values[static_cast<size_t>(50 * 200 + x)], 0) << x;
  }
}

TEST(Repaint, WhatIsCutOutGoesBackToItsPlace) {
  const io::Pixels whole = halves(20, 10);
  const Region region{8, 2, 6, 4};
  const io::Pixels part = cropped(whole, region);
  EXPECT_EQ(part.width, 6);
  EXPECT_EQ(pasted(part, whole, region, everything(region)).values, whole.values);
  io::Pixels white{.width = 3, .height = 2, .channels = 3, .values = std::vector<uint8_t>(18, 255)};
  const io::Pixels changed = pasted(white, whole, region, everything(region));
  for (int32_t i = 0; i < 200; ++i) {
    const bool inside = i % 20 >= 8 && i % 20 < 14 && i / 20 >= 2 && i / 20 < 6;
    EXPECT_EQ(changed.values[static_cast<size_t>(i) * 3 + 1], inside ? 255 : 40) << i;
  }
  const Mask part_of_it{6, 4, std::vector<uint8_t>(24, 51)};  // a fifth
  EXPECT_EQ(pasted(white, whole, region, part_of_it).values[(3 * 20 + 9) * 3 + 1], 83);
}

// A device with memory of its own has one request at a time: others begin when the last picture
// needs it no more.
TEST(Repaint, TheLastPictureLeavesTheDeviceBeforeItIsPastedBack) {
  const ImageSource source = fake_source(half_noise);
  ImageRequest request = repaint(true);
  request.steps = 1;
  request.width = request.height = 64;
  request.count = 3;
  request.batch = 2;
  std::vector<bool> told;
  std::vector<int32_t> done;
  PipelineHooks hooks;
  hooks.step = [](int32_t) { return true; };
  hooks.beside = [&](const std::function<void()>& work, bool last) {
    told.push_back(last);
    work();
  };
  hooks.image = [&](const io::Pixels&, int32_t index) {
    done.push_back(index);
    return true;
  };
  PipelineTimes times;
  ImagePipeline pipeline(source);
  EXPECT_TRUE(pipeline.run(request, resolve(source, request), hooks, times));
  EXPECT_EQ(done, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(told, (std::vector<bool>{false, false, true}));
}

TEST(Repaint, SurroundingsRunIntoTheMask) {
  const io::Pixels whole = halves(64, 48);
  const Region hole{16, 8, 32, 32};
  const io::Pixels filled = filled_around(whole, box(64, 48, hole));
  const auto red = [&](int32_t x, int32_t y) {
    return int{filled.values[static_cast<size_t>(y * 64 + x) * 3]};
  };
  for (int32_t i = 0; i < 64 * 48; ++i) {
    const int32_t x = i % 64 - hole.left, y = i / 64 - hole.top;
    const bool inside = x >= 0 && x < hole.width && y >= 0 && y < hole.height;
    const auto at = static_cast<size_t>(i) * 3;
    if (!inside) {
      EXPECT_EQ(filled.values[at], whole.values[at]) << i;
    }
    EXPECT_NEAR(filled.values[at + 1], 40, 1) << i;  // one colour stays that colour
  }
  EXPECT_GT(red(17, 24), 190);
  EXPECT_LT(red(46, 24), 20);
  EXPECT_GT(red(24, 24), red(32, 24));
  EXPECT_GT(red(32, 24), red(40, 24));
}

TEST(Repaint, SoftEdgesReachOutwards) {
  const Mask soft = blurred(box(40, 40, {10, 10, 20, 20}), 2);
  const Mask wide = widened(soft);
  const size_t inside = 20 * 40 + 10, outside = 20 * 40 + 8;
  EXPECT_EQ(wide.values[inside], kAllPainted);
  EXPECT_EQ(wide.values[outside], 2 * soft.values[outside]);
  EXPECT_GT(wide.values[outside], 51);
}

// Sizes and places follow modules/images.py, resize_image, of A1111: the inner picture's other side
// is an integer quotient; its place is width // 2 - own // 2.
TEST(Fit, CutsOutTheMiddleOrFillsUpTheEdges) {
  io::Pixels stripes{.width = 100, .height = 20, .channels = 3, .values = {}};
  for (int32_t i = 0; i < 100 * 20; ++i) {
    const int32_t x = i % 100;
    stripes.values.insert(stripes.values.end(), 3, x < 30 ? 50 : x < 70 ? 150 : 250);
  }
  const auto at = [](const io::Pixels& pixels, int32_t x, int32_t y) {
    return pixels.values[static_cast<size_t>(3 * (y * pixels.width + x))];
  };
  // 100 x 20 becomes 200 x 40; columns 80 to 119 stay.
  const io::Pixels cut = fitted(stripes, 40, 40, Fit::crop);
  EXPECT_EQ(cut.width, 40);
  EXPECT_EQ(cut.height, 40);
  EXPECT_EQ(at(cut, 0, 0), 150);
  EXPECT_EQ(at(cut, 39, 39), 150);
  // 100 x 20 becomes 40 x 8, at row 16.
  const io::Pixels filled = fitted(stripes, 40, 40, Fit::fill);
  EXPECT_EQ(filled.height, 40);
  for (const int32_t y : {0, 15, 16, 23, 24, 39}) {
    EXPECT_EQ(at(filled, 2, y), 50) << y;
    EXPECT_EQ(at(filled, 20, y), 150) << y;
    EXPECT_EQ(at(filled, 37, y), 250) << y;
  }
  const io::Pixels stretched = fitted(stripes, 40, 40, Fit::stretch);
  EXPECT_EQ(at(stretched, 2, 20), 50);
  EXPECT_EQ(at(stretched, 37, 20), 250);
}

TEST(Fit, OfTallPicturesIsTheOtherWayRound) {
  io::Pixels tall{.width = 20, .height = 100, .channels = 4, .values = {}};
  for (int32_t i = 0; i < 20 * 100; ++i) {
    const auto value = static_cast<uint8_t>(i / 20 < 30 ? 50 : 250);
    tall.values.insert(tall.values.end(), {value, value, value, 255});
  }
  const io::Pixels cut = fitted(tall, 40, 20, Fit::crop);  // 40 x 200; keeps rows 90 to 109
  EXPECT_EQ(cut.channels, 4);
  EXPECT_EQ(cut.values[0], 250);
  const io::Pixels filled = fitted(tall, 40, 20, Fit::fill);  // 4 x 20 at column 18
  EXPECT_EQ(filled.width, 40);
  EXPECT_EQ(filled.values[0], 50);
  EXPECT_EQ(filled.values[4 * (19 * 40 + 39)], 250);
  const io::Pixels line{
      .width = 8000, .height = 1, .channels = 3, .values = std::vector<uint8_t>(24000)};
  harness::expect_error("resize_mode", "8000 x 1", "64 x 64",
                        [&] { fitted(line, 64, 64, Fit::crop); });
  EXPECT_EQ(fitted(line, 64, 64, Fit::fill).height, 64);
}

// The mask is resized with the picture.
TEST(Fit, IsOfPicturesAndTheirMasks) {
  const ImageSource source = fake_source(half_noise);
  ImageRequest request = repaint(false);  // 200 x 120, the mask from 100 to 119 and 40 to 59
  request.width = request.height = 96;
  request.fit = Fit::crop;  // 160 x 96 of which columns 32 to 127: the mask is at 48 and 32
  const ImageSettings cut = resolve(source, request);
  const auto masked = [](const ImageSettings& settings, int32_t x, int32_t y) {
    return settings.mask->values[static_cast<size_t>(y * 96 + x)];
  };
  EXPECT_EQ(cut.init->width, 96);
  EXPECT_EQ(masked(cut, 50, 34), kAllPainted);
  EXPECT_EQ(masked(cut, 61, 45), kAllPainted);
  EXPECT_EQ(masked(cut, 45, 34), 0);
  EXPECT_EQ(masked(cut, 50, 50), 0);
  request.fit = Fit::fill;  // 96 x 57 at row 20: the mask is at 48 and 39
  const ImageSettings filled = resolve(source, request);
  EXPECT_EQ(masked(filled, 50, 41), kAllPainted);
  EXPECT_EQ(masked(filled, 50, 34), 0);
}

TEST(Repaint, OnlyWhatIsAroundTheMaskIsPaintedWhenAskedFor) {
  const ImageSource source = fake_source(half_noise);
  const ImageSettings part = resolve(source, repaint(true));
  EXPECT_EQ(part.width, 64);  // the model's own
  EXPECT_EQ(part.height, 64);
  EXPECT_EQ(part.final_width, 200);
  EXPECT_EQ(part.final_height, 120);
  expect_region(part.repainted.region, {96, 36, 28, 28});
  EXPECT_EQ(part.mask->width, 64);
  EXPECT_EQ(part.mask->values.front(), 0);
  EXPECT_EQ(part.mask->values[32 * 64 + 32], kAllPainted);
  const ImageSettings whole = resolve(source, repaint(false));
  EXPECT_EQ(whole.width, 200);
  EXPECT_EQ(whole.final_height, 120);
}

TEST(Repaint, PicturesKeepTheirSizeAndWhatIsNotMasked) {
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  auto sink = std::make_shared<ImageRecorder>();
  ImageRequest request = repaint(true);
  request.steps = 2;
  engine->submit(request, sink);
  ASSERT_TRUE(sink->wait());
  ASSERT_EQ(sink->images.size(), 1u);
  const io::Pixels got = io::decode_image(sink->images[0].file, "png");
  const io::Pixels sent = halves(200, 120);
  ASSERT_EQ(got.width, 200);
  ASSERT_EQ(got.height, 120);
  size_t changed = 0;
  for (int32_t i = 0; i < 200 * 120; ++i) {
    const auto at = static_cast<size_t>(i) * 3;
    const bool inside = i % 200 >= 100 && i % 200 < 120 && i / 200 >= 40 && i / 200 < 60;
    const bool same = std::equal(got.values.begin() + static_cast<int64_t>(at),
                                 got.values.begin() + static_cast<int64_t>(at) + 3,
                                 sent.values.begin() + static_cast<int64_t>(at));
    if (!inside) {
      EXPECT_TRUE(same) << i;
    }
    if (!same) ++changed;
  }
  EXPECT_GT(changed, 300u);
  EXPECT_NE(sink->images[0].parameters.find("Inpaint area: Only masked, Masked area padding: 4"),
            std::string::npos);
}

}  // namespace
}  // namespace rbee::engine
