#include "rbee/engine/image/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "rbee/engine/api/image_parameters.h"
#include "rbee/io/image/png.h"
#include "rbee/ops/elementwise.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ImageRequest small_request() {
  ImageRequest out;
  out.job_id = "job";
  out.prompt = "a red cat";
  out.steps = 4;
  out.sampler = "Euler";
  out.seed = 5;
  return out;
}

std::unique_ptr<ImageEngine> engine_of(FakeDenoiser::Output output, int32_t max_waiting = 4) {
  return make_image_engine(fake_source(std::move(output)),
                           {.max_waiting = max_waiting, .warm_up = false});
}

std::shared_ptr<ImageRecorder> made(ImageEngine& engine, ImageRequest request) {
  auto sink = std::make_shared<ImageRecorder>();
  engine.submit(std::move(request), sink);
  EXPECT_TRUE(sink->wait());
  return sink;
}

std::string uniform_png(int32_t width, int32_t height, uint8_t value) {
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  out.values.assign(static_cast<size_t>(width * height * 3), value);
  return io::encode_png(out);
}

// Stops a denoiser in its first call until the test releases it.
struct Gate {
  std::promise<void> reached;
  std::promise<void> open;
  std::atomic<bool> first{true};

  FakeDenoiser::Output output() {
    return [this](const Tensor& x) {
      if (first.exchange(false)) {
        reached.set_value();
        open.get_future().wait();
      }
      return half_noise(x);
    };
  }
};

TEST(ImageEngine, TellsEverythingInOrder) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.count = 2;
  request.preview_interval = 2;
  const auto sink = made(*engine, request);
  EXPECT_THAT(sink->order,
              ElementsAre("started", "progress", "preview", "progress", "preview", "image",
                          "progress", "preview", "progress", "preview", "image", "finished"));
  EXPECT_EQ(sink->started.model, "fake");
  EXPECT_EQ(sink->started.steps, 8);
  EXPECT_EQ(sink->started.width, 64);
  EXPECT_EQ(sink->started.seed, 5u);
  EXPECT_EQ(sink->started.sampler, "Euler");
  ASSERT_EQ(sink->progress.size(), 8u);
  EXPECT_EQ(sink->progress.back().step, 8);
  EXPECT_EQ(sink->progress.back().total, 8);
  EXPECT_GT(sink->progress.back().images_per_second, 0);
  EXPECT_EQ(sink->finished.images, 2);
  EXPECT_EQ(sink->finished.steps, 8);
  EXPECT_FALSE(sink->finished.cancelled);
  const ImageStats stats = engine->stats();
  EXPECT_EQ(stats.requests_finished, 1u);
  EXPECT_EQ(stats.images, 2u);
  EXPECT_EQ(stats.steps, 8u);
}

// Counted over all pictures and passes together.
TEST(ImageEngine, ShowsAsManyPreviewsAsAsked) {
  const auto engine = engine_of(half_noise);
  const auto shown = [&](int32_t previews, int32_t steps, int32_t count, bool hires) {
    ImageRequest request = small_request();
    request.preview_count = previews;
    request.steps = steps;
    request.count = count;
    if (hires) request.hires.emplace();
    const auto sink = made(*engine, request);
    std::vector<int32_t> out;
    for (const ImagePreview& preview : sink->previews) {
      out.push_back(preview.step);
    }
    return out;
  };
  EXPECT_THAT(shown(1, 4, 1, false), ElementsAre(2));
  EXPECT_THAT(shown(2, 6, 1, false), ElementsAre(2, 4));
  EXPECT_THAT(shown(3, 7, 1, false), ElementsAre(1, 2, 3));
  EXPECT_THAT(shown(3, 2, 1, false), ElementsAre(1));
  EXPECT_THAT(shown(1, 1, 1, false), ElementsAre());
  EXPECT_THAT(shown(1, 4, 2, false), ElementsAre(4));
  EXPECT_THAT(shown(1, 4, 1, true), ElementsAre(3));  // 4 and int(4 * 0.7)
}

TEST(ImageEngine, PicturesTellHowTheyWereMade) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.negative_prompt = "blurry";
  request.sampler = "DPM++ 2M Karras";
  request.count = 2;
  const auto sink = made(*engine, request);
  ASSERT_EQ(sink->images.size(), 2u);
  const ImageReady& second = sink->images[1];
  EXPECT_EQ(second.seed, 6u);
  EXPECT_EQ(io::png_text(second.file, "parameters"), second.parameters);
  EXPECT_EQ(second.parameters,
            "a red cat\nNegative prompt: blurry\nSteps: 4, Sampler: DPM++ 2M, Schedule type: "
            "Karras, CFG scale: 7.5, Seed: 6, Size: 64x64, Model: fake, RNG: CPU, Version: "
            "rbee.cpp");
  const io::Pixels pixels = io::decode_image(second.file, "png");
  EXPECT_EQ(pixels.width, 64);
  EXPECT_EQ(pixels.height, 64);
}

TEST(ImageEngine, PicturesCanBeMadeAgainFromTheirFiles) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.prompt = "a (red:1.2) cat\nin two lines";
  request.negative_prompt = "dog";
  request.sampler = "DPM++ 2M SDE";
  request.schedule = "Exponential";
  request.guidance_scale = 3.25f;
  request.guidance_rescale = 0.3f;
  request.prompt_rule = PromptRule::comfy;
  request.hires = HiresFix{.scale = 1.5f, .steps = 3, .strength = 0.8f};
  request.count = 2;
  const auto first = made(*engine, request);
  const std::string& png = first->images[1].file;
  const auto again = made(*engine, parse_parameters(*io::png_text(png, "parameters")));
  ASSERT_EQ(again->images.size(), 1u);
  EXPECT_EQ(again->images[0].file, png);
}

TEST(ImageEngine, WritesTheFormThatIsAskedFor) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  const auto whole = made(*engine, request)->images[0];
  for (const auto format : {io::ImageFormat::jpeg, io::ImageFormat::webp}) {
    SCOPED_TRACE(io::name(format));
    request.encoding = {.format = format, .quality = 10};
    const auto small = made(*engine, request)->images[0];
    EXPECT_EQ(small.format, format);
    EXPECT_EQ(io::read_image_header(small.file, "file").format, format);
    EXPECT_EQ(io::image_parameters(small.file), whole.parameters);
    request.encoding.quality = 95;
    EXPECT_GT(made(*engine, request)->images[0].file.size(), small.file.size());
  }
}

TEST(ImageEngine, SameSeedsGiveSamePictures) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.sampler = "Euler a";
  const auto once = made(*engine, request);
  request.count = 3;
  request.batch = 3;
  const auto together = made(*engine, request);
  ASSERT_EQ(together->images.size(), 3u);
  EXPECT_EQ(together->images[0].file, once->images[0].file);
  request.seed = 7;
  request.count = 1;
  const auto third = made(*engine, request);
  EXPECT_EQ(io::decode_image(third->images[0].file, "png").values,
            io::decode_image(together->images[2].file, "png").values);
  request.noise_source = NoiseSource::philox;
  EXPECT_NE(io::decode_image(made(*engine, request)->images[0].file, "png").values,
            io::decode_image(third->images[0].file, "png").values);
}

TEST(ImageEngine, CancelsBetweenSteps) {
  Gate gate;
  const auto engine = engine_of(gate.output());
  const auto running = std::make_shared<ImageRecorder>();
  engine->submit(small_request(), running);
  gate.reached.get_future().wait();
  ImageRequest next = small_request();
  next.job_id = "next";
  const auto waiting = std::make_shared<ImageRecorder>();
  engine->submit(next, waiting);
  EXPECT_EQ(engine->stats().waiting, 1);
  EXPECT_TRUE(engine->cancel("next"));
  EXPECT_TRUE(engine->cancel("job"));
  EXPECT_FALSE(engine->cancel("other"));
  gate.open.set_value();
  ASSERT_TRUE(running->wait());
  ASSERT_TRUE(waiting->wait());
  EXPECT_TRUE(running->finished.cancelled);
  EXPECT_EQ(running->finished.steps, 1);
  EXPECT_TRUE(running->images.empty());
  EXPECT_THAT(waiting->order, ElementsAre("finished"));
  EXPECT_TRUE(waiting->finished.cancelled);
  EXPECT_EQ(engine->stats().requests_cancelled, 2u);
  EXPECT_FALSE(made(*engine, small_request())->images.empty());
}

TEST(ImageEngine, HurriedRequestsGiveTheirPicturesAsTheyAre) {
  struct Case {
    Hurry how;
    size_t images;
    int32_t steps;
  };
  for (const Case& wanted : {Case{Hurry::pictures, 3, 1 + 4 + 4}, Case{Hurry::request, 1, 1}}) {
    Gate gate;
    const auto engine = engine_of(gate.output());
    auto sink = std::make_shared<ImageRecorder>();
    ImageRequest request = small_request();
    request.count = 3;
    engine->submit(request, sink);
    gate.reached.get_future().wait();
    EXPECT_FALSE(engine->hurry("another", wanted.how));
    EXPECT_TRUE(engine->hurry("job", wanted.how));
    gate.open.set_value();
    ASSERT_TRUE(sink->wait());
    EXPECT_EQ(sink->images.size(), wanted.images);
    EXPECT_EQ(sink->finished.steps, wanted.steps);
    EXPECT_FALSE(sink->finished.cancelled);
    EXPECT_EQ(engine->stats().requests_finished, 1u);
  }
}

// The model's estimate of the picture, without the noise that is left.
TEST(ImageEngine, AHurriedPictureIsTheDenoisedOne) {
  Gate gate;
  const auto engine = engine_of([&](const Tensor& x) {
    gate.output()(x);
    return x;
  });
  auto sink = std::make_shared<ImageRecorder>();
  engine->submit(small_request(), sink);
  gate.reached.get_future().wait();
  engine->hurry("job", Hurry::request);
  gate.open.set_value();
  ASSERT_TRUE(sink->wait());
  ASSERT_EQ(sink->images.size(), 1u);
  const io::Pixels found = io::decode_image(sink->images[0].file, "png");
  const auto [low, high] = std::ranges::minmax(found.values);
  EXPECT_LT(high - low, 100);
}

TEST(ImageEngine, RefusesMoreThanItsQueueHolds) {
  Gate gate;
  const auto engine = engine_of(gate.output(), 1);
  const auto running = std::make_shared<ImageRecorder>();
  engine->submit(small_request(), running);
  gate.reached.get_future().wait();
  const auto waiting = std::make_shared<ImageRecorder>();
  engine->submit(small_request(), waiting);
  try {
    engine->submit(small_request(), std::make_shared<ImageRecorder>());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
  }
  gate.open.set_value();
  ASSERT_TRUE(waiting->wait());
  EXPECT_EQ(waiting->images.size(), 1u);
}

TEST(ImageEngine, StopsInTheMiddle) {
  Gate gate;
  const auto engine = engine_of(gate.output());
  const auto running = std::make_shared<ImageRecorder>();
  engine->submit(small_request(), running);
  gate.reached.get_future().wait();
  const auto waiting = std::make_shared<ImageRecorder>();
  engine->submit(small_request(), waiting);
  auto stopping = std::async(std::launch::async, [&] { engine->stop(); });
  gate.open.set_value();
  stopping.wait();
  ASSERT_TRUE(running->wait());
  ASSERT_TRUE(waiting->wait());
  EXPECT_EQ(waiting->order.back(), "finished");
  EXPECT_EQ(engine->stats().running, 0);
  try {
    engine->submit(small_request(), std::make_shared<ImageRecorder>());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stopping"));
  }
}

TEST(ImageEngine, ReportsValuesThatAreNotFiniteAndGoesOn) {
  std::atomic<bool> broken{true};
  const auto engine =
      engine_of([&](const Tensor& x) { return affine(x, broken ? std::nan("") : 0.5, 0); });
  const auto sink = made(*engine, small_request());
  ASSERT_EQ(sink->failures.size(), 1u);
  EXPECT_EQ(sink->failures[0].code, Code::unsupported);
  EXPECT_THAT(sink->failures[0].message, HasSubstr("bf16"));
  EXPECT_EQ(engine->stats().requests_failed, 1u);
  broken = false;
  EXPECT_EQ(made(*engine, small_request())->images.size(), 1u);
}

TEST(ImageEngine, IsUnhealthyWithoutItsDevice) {
  const auto engine =
      engine_of([](const Tensor&) -> Tensor { fail(Code::device, "gpu", "fell off the bus"); });
  const auto sink = made(*engine, small_request());
  ASSERT_EQ(sink->failures.size(), 1u);
  EXPECT_EQ(sink->failures[0].code, Code::device);
  EXPECT_FALSE(engine->stats().healthy);
  EXPECT_THROW(engine->submit(small_request(), std::make_shared<ImageRecorder>()), Error);
}

TEST(ImageEngine, StartsFromPictures) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.init_image = uniform_png(80, 70, 200);
  request.strength = 0.5f;
  const auto sink = made(*engine, request);
  EXPECT_EQ(sink->started.steps, 2);
  EXPECT_EQ(sink->started.width, 80);
  EXPECT_EQ(sink->started.height, 64);  // the multiple of 8 below
  EXPECT_THAT(sink->images[0].parameters, HasSubstr("Denoising strength: 0.5"));
  request.strength_rule = StrengthRule::a1111;
  EXPECT_EQ(made(*engine, request)->started.steps, 3);
  request.strength_rule = StrengthRule::all;
  EXPECT_EQ(made(*engine, request)->started.steps, 4);
}

TEST(ImageEngine, KeepsWhatTheMaskDoesNotCover) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.init_image = uniform_png(64, 64, 200);
  io::Pixels mask{.width = 64, .height = 64, .channels = 3, .values = {}};
  for (int i = 0; i < 64 * 64 * 3; ++i) mask.values.push_back(i % 192 < 96 ? 255 : 0);
  request.mask_image = io::encode_png(mask);
  const auto sink = made(*engine, request);
  const io::Pixels pixels = io::decode_image(sink->images[0].file, "png");
  const auto at = [&](int x, int y) { return pixels.values[static_cast<size_t>(y * 64 + x) * 3]; };
  int changed = 0;
  for (int y = 0; y < 64; ++y) {
    for (int x = 32; x < 64; ++x) EXPECT_EQ(at(x, y), 200);
    for (int x = 0; x < 32; ++x) changed += at(x, y) != 200 ? 1 : 0;
  }
  EXPECT_GT(changed, 1000);
  request.mask_invert = true;
  const io::Pixels inverted = io::decode_image(made(*engine, request)->images[0].file, "png");
  EXPECT_EQ(inverted.values[0], 200);
}

TEST(ImageEngine, MakesASecondPassAtALargerSize) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.hires = HiresFix{.scale = 1.5f, .steps = 6, .strength = 0.5f};
  const auto sink = made(*engine, request);
  EXPECT_EQ(sink->started.steps, 4 + 3);
  EXPECT_EQ(sink->started.width, 96);
  ASSERT_EQ(sink->images.size(), 1u);
  EXPECT_EQ(sink->images[0].width, 96);
  EXPECT_EQ(sink->images[0].height, 96);
  EXPECT_THAT(sink->images[0].parameters, HasSubstr("Size: 64x64"));
  EXPECT_THAT(sink->images[0].parameters, HasSubstr("Hires upscale: 1.5, Hires steps: 6"));
}

TEST(ImageEngine, TellsTheStrengthsOfBothPassesOfAPicture) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.init_image = uniform_png(64, 64, 200);
  request.strength = 0.75f;
  request.hires = HiresFix{.scale = 1.5f, .steps = 6, .strength = 0.5f};
  const auto sink = made(*engine, request);
  ASSERT_EQ(sink->images.size(), 1u);
  const ImageRequest again = parse_parameters(sink->images[0].parameters);
  EXPECT_EQ(again.strength, 0.75f);
  ASSERT_TRUE(again.hires);
  EXPECT_EQ(again.hires->strength, 0.5f);
}

TEST(ImageEngine, VariationsHaveOneSeedAndTellTheOther) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.variation = {.seed = 40, .strength = 0.25f};
  request.count = 2;
  const auto sink = made(*engine, request);
  ASSERT_EQ(sink->images.size(), 2u);
  EXPECT_EQ(sink->images[1].seed, 5u);
  EXPECT_NE(io::decode_image(sink->images[0].file, "a").values,
            io::decode_image(sink->images[1].file, "b").values);
  const std::string& text = sink->images[1].parameters;
  EXPECT_THAT(text, HasSubstr("Seed: 5, Size: 64x64, Model: fake, Variation seed: 41, Variation "
                              "seed strength: 0.25"));
  EXPECT_EQ(made(*engine, parse_parameters(text))->images[0].file, sink->images[1].file);
}

TEST(ImageEngine, AddsNoiseAndTellsIt) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  const auto plain = made(*engine, request);
  std::set<std::string> pictures = {plain->images[0].file};
  const auto differs = [&](const char* told) {
    const auto sink = made(*engine, request);
    ASSERT_EQ(sink->images.size(), 1u) << told;
    EXPECT_THAT(sink->images[0].parameters, HasSubstr(told));
    EXPECT_TRUE(pictures.insert(sink->images[0].file).second) << told;
    EXPECT_EQ(made(*engine, parse_parameters(sink->images[0].parameters))->images[0].file,
              sink->images[0].file);
  };
  request.added_noise = {.churn = 2, .tmin = 0.5f, .tmax = 10, .noise = 1.5f};
  differs("Sigma churn: 2, Sigma tmin: 0.5, Sigma tmax: 10, Sigma noise: 1.5");
  request.seed_delta = 31337;
  differs("ENSD: 31337");
  request.seed_width = 96;
  request.seed_height = 32;
  differs("Seed resize from: 96x32");
  request.tiling = Tiling::x;
  request.seed = 6;
  differs("Tiling: X");
  request.added_noise = {.noise = 0.5f};
  request.sampler = "Euler a";
  differs("Sigma noise: 0.5");
}

TEST(ImageEngine, EnlargesLatentsOrPictures) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  std::set<std::vector<uint8_t>> pictures;
  for (const char* upscaler :
       {"Latent", "Latent (bicubic antialiased)", "Latent (nearest-exact)", "Lanczos", "Nearest"}) {
    request.hires = HiresFix{.width = 128, .height = 96, .strength = 0.5f, .upscaler = upscaler};
    const auto sink = made(*engine, request);
    ASSERT_EQ(sink->images.size(), 1u) << upscaler;
    const std::string& text = sink->images[0].parameters;
    EXPECT_THAT(text, HasSubstr(cat("Hires resize: 128x96, Hires upscaler: ", upscaler, ",")));
    const io::Pixels picture = io::decode_image(sink->images[0].file, "file");
    EXPECT_EQ(picture.width, 128);
    EXPECT_EQ(picture.height, 96);
    pictures.insert(picture.values);
    EXPECT_EQ(made(*engine, parse_parameters(text))->images[0].file, sink->images[0].file);
  }
  EXPECT_EQ(pictures.size(), 5u);
}

// How alike the denoiser's first inputs in both passes are, -1 to 1; passes of one size.
double likeness_of_starts(NoiseSource source) {
  std::vector<std::vector<float>> seen;
  const auto engine = engine_of([&](const Tensor& x) {
    seen.push_back(x.to_host<float>());
    return x;  // all of it is noise
  });
  ImageRequest request = small_request();
  request.guidance_scale = 1;
  request.noise_source = source;
  request.hires = HiresFix{.scale = 1, .strength = 0.9f};
  made(*engine, request);
  const std::vector<float>&a = seen.front(), &b = seen.at(4);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

TEST(ImageEngine, SecondPassesDrawAnewAsInAutomatic1111) {
  EXPECT_GT(likeness_of_starts(NoiseSource::philox), 0.9);
  EXPECT_LT(likeness_of_starts(NoiseSource::torch), 0.5);
}

TEST(ImageEngine, SecondPassesRunTheirStepsAsInAutomatic1111) {
  const auto engine = engine_of(half_noise);
  ImageRequest request = small_request();
  request.hires = HiresFix{.scale = 1.5f, .steps = 6, .strength = 0.5f};
  request.strength_rule = StrengthRule::a1111;
  const auto sink = made(*engine, request);
  EXPECT_EQ(sink->started.steps, 4 + 6);
  const std::string& text = sink->images[0].parameters;
  EXPECT_THAT(text, HasSubstr("Strength rule: A1111"));
  EXPECT_EQ(made(*engine, parse_parameters(text))->images[0].file, sink->images[0].file);
}

TEST(ImageEngine, RefusesBadRequestsByFieldAndRange) {
  const auto engine = engine_of(half_noise);
  const auto refused = [&](const char* field, const char* what, auto&& change) {
    ImageRequest request = small_request();
    change(request);
    harness::expect_error(field, what, "",
                          [&] { engine->submit(request, std::make_shared<ImageRecorder>()); });
  };
  refused("steps", "1 to 150", [](ImageRequest& r) { r.steps = 151; });
  refused("width", "multiple of 8; the nearest are 64 and 72",
          [](ImageRequest& r) { r.width = 65; });
  refused("height", "64 to 2048", [](ImageRequest& r) { r.height = 4096; });
  refused("guidance_scale", "0 to 30", [](ImageRequest& r) { r.guidance_scale = NAN; });
  refused("subseed_strength", "0 to 1", [](ImageRequest& r) { r.variation.strength = 1.5f; });
  refused("strength", "0 to 1", [](ImageRequest& r) { r.strength = 1.5f; });
  refused("count", "1 to 16", [](ImageRequest& r) { r.count = 17; });
  refused("sampler", "DPM++ 2M", [](ImageRequest& r) { r.sampler = "best"; });
  refused("schedule", "Karras", [](ImageRequest& r) { r.schedule = "best"; });
  refused("init_image", "no PNG, JPEG, WebP, GIF or BMP",
          [](ImageRequest& r) { r.init_image = "x"; });
  refused("mask_image", "no init_image", [](ImageRequest& r) { r.mask_image = "x"; });
  refused("hires.width", "multiple of 8", [](ImageRequest& r) { r.hires = HiresFix{.width = 65}; });
  refused("hires.upscaler", "Latent", [](ImageRequest& r) { r.hires = HiresFix{.upscaler = "x"}; });
  refused("hires.width", "2048", [](ImageRequest& r) {
    r.width = 1024;
    r.hires = HiresFix{.scale = 4};
  });
  EXPECT_FALSE(made(*engine, small_request())->images.empty());
}

TEST(ImageEngine, ChangesLorasBetweenRequests) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rbee_loras";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "style.safetensors") << "x";
  std::vector<size_t> loads;
  std::vector<models::LoraSource> last;
  ImageSource source = fake_source(half_noise);
  source.loras = LoraFolder(folder);
  std::string broken;
  source.change_loras = [&](models::ImageModel&, const std::vector<models::LoraSource>& loras) {
    loads.push_back(loras.size());
    last = loras;
    if (!broken.empty()) fail(Code::invalid_argument, broken, "it is broken");
  };
  const auto engine = make_image_engine(std::move(source), {.warm_up = false});
  ImageRequest request = small_request();
  request.loras = {{"style", 0.5f}};
  EXPECT_FALSE(made(*engine, request)->images.empty());
  EXPECT_FALSE(made(*engine, request)->images.empty());
  EXPECT_FALSE(made(*engine, small_request())->images.empty());
  EXPECT_THAT(loads, ElementsAre(1, 0));
  // A tag may give text encoders another strength.
  request.loras = {};
  request.prompt = "<lora:style:0.25:0.5>";
  made(*engine, request);
  EXPECT_EQ(last.at(0).weight, 0.5f);
  EXPECT_EQ(last.at(0).text_weight, 0.25f);
  request.loras = {{"style", 0.5f}};
  request.prompt = "";
  loads = {1, 0};
  // After a failure the model's state is unknown: the next request sets it in any case.
  broken = (folder / "style.safetensors").string();
  const char* const told = "loras: style.safetensors: it is broken";
  EXPECT_EQ(made(*engine, request)->failures.at(0).message, told);
  broken = "/models/unet.safetensors";  // clients must not read this path
  EXPECT_THAT(made(*engine, request)->failures.at(0).message, HasSubstr("model's own files"));
  broken.clear();
  EXPECT_FALSE(made(*engine, small_request())->images.empty());
  EXPECT_THAT(loads, ElementsAre(1, 0, 1, 1, 0));
  // A tag makes the same request, and the text encoders do not read it.
  request.loras = {};
  request.prompt = "a red cat <lora:style:0.5>";
  const auto tagged = made(*engine, request);
  EXPECT_THAT(loads, ElementsAre(1, 0, 1, 1, 0, 1));
  EXPECT_THAT(tagged->images.at(0).parameters, HasSubstr("a red cat <lora:style:0.5>\nSteps"));
  request.prompt = "a red cat";
  request.loras = {{"style", 0.5f}};
  EXPECT_EQ(made(*engine, request)->images.at(0).parameters, tagged->images[0].parameters);
  request.loras = {{"style", 0.5f, 2.0f}};
  EXPECT_THAT(made(*engine, request)->images.at(0).parameters,
              HasSubstr("a red cat <lora:style:2:0.5>\nSteps"));
  request.prompt = "<lora:absent>";
  request.loras = {};
  try {
    engine->submit(request, std::make_shared<ImageRecorder>());
    ADD_FAILURE() << "no such LoRA was missed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), HasSubstr("\"absent\""));
  }
  request.loras = {{"../style", 0.5f}};
  harness::expect_error("loras.path", "../style", "folder",
                        [&] { engine->submit(request, std::make_shared<ImageRecorder>()); });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rbee::engine
