// DPM adaptive, whose number of calls is unknown: its progress, and settings that follow it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rbee/ops/elementwise.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::HasSubstr;

ImageRequest request_of(const std::string& prompt, int32_t steps) {
  ImageRequest out;
  out.prompt = prompt;
  out.steps = steps;
  out.sampler = "DPM adaptive";
  out.seed = 5;
  return out;
}

std::shared_ptr<ImageRecorder> made(ImageEngine& engine, const ImageRequest& request) {
  auto sink = std::make_shared<ImageRecorder>();
  engine.submit(request, sink);
  EXPECT_TRUE(sink->wait());
  return sink;
}

// Progress is the part of the noise levels passed, in units of the requested steps.
TEST(AdaptiveSampling, IsToldInSteps) {
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  ImageRequest request = request_of("a red cat", 4);
  request.count = request.batch = 2;
  const auto sink = made(*engine, request);
  EXPECT_EQ(sink->started.steps, 8);
  int32_t before = 0;
  for (const ImageProgress& progress : sink->progress) {
    EXPECT_GT(progress.step, before);
    before = progress.step;
  }
  EXPECT_EQ(before, 8);
  EXPECT_EQ(sink->finished.steps, 8);
  EXPECT_GT(engine->stats().steps, 8u);
  EXPECT_EQ(engine->stats().steps % 3, 0u);
}

TEST(AdaptiveSampling, OfAPictureDoesNotDependOnOthers) {
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  ImageRequest request = request_of("a red cat", 4);
  request.count = request.batch = 2;
  const auto both = made(*engine, request);
  request.count = 1;
  request.seed = 6;
  ASSERT_EQ(both->images.size(), 2u);
  EXPECT_EQ(made(*engine, request)->images.front().file, both->images.back().file);
}

TEST(AdaptiveSampling, EndsWhereTheErrorIsNoNumber) {
  const auto output = [](const Tensor& x) { return affine(x, std::nan(""), 0); };
  const auto engine = make_image_engine(fake_source(output), {.warm_up = false});
  const auto sink = made(*engine, request_of("a red cat", 4));
  ASSERT_EQ(sink->failures.size(), 1u);
  EXPECT_THAT(sink->failures.front().message, HasSubstr("not finite"));
}

// The first trial, three calls, is far shorter than a step.
TEST(AdaptiveSampling, HasPromptsThatChangeWithTheSteps) {
  const FakeDenoiser* denoiser = nullptr;
  std::vector<long> alive;
  ImageSource source = fake_source([&](const Tensor& x) {
    alive.push_back(denoiser->alive());
    return half_noise(x);
  });
  denoiser = static_cast<const FakeDenoiser*>(source.model.denoiser.get());
  const auto engine = make_image_engine(std::move(source), {.warm_up = false});
  made(*engine, request_of("[a|b]", 8));
  ASSERT_GT(alive.size(), 8u);
  EXPECT_EQ(std::vector(alive.begin(), alive.begin() + 3), std::vector<long>(3, 1));
  EXPECT_EQ(std::ranges::max(alive), 2);
}

}  // namespace
}  // namespace rbee::engine
