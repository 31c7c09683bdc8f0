// Strengths so small that a schedule has fewer levels than the steps need.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

std::shared_ptr<ImageRecorder> made(ImageEngine& engine, const ImageRequest& request) {
  auto sink = std::make_shared<ImageRecorder>();
  engine.submit(request, sink);
  EXPECT_TRUE(sink->wait());
  return sink;
}

// Leading timesteps are fewer than 1000, and LCM's are 50.
TEST(SmallStrengths, RunTheirStepsFromTheLastLevels) {
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  for (const char* sampler : {"Euler", "DDIM", "LCM"}) {
    for (const char* schedule : {"Automatic", "Leading", "Trailing", "Karras"}) {
      for (const float strength : {0.0f, 0.02f}) {
        SCOPED_TRACE(cat(sampler, " ", schedule, " ", strength));
        ImageRequest request;
        request.prompt = "a red cat";
        request.steps = 2;
        request.seed = 5;
        request.sampler = sampler;
        request.schedule = schedule;
        request.strength_rule = StrengthRule::all;
        request.hires = HiresFix{.scale = 1.5f, .steps = 3, .strength = strength};
        const auto sink = made(*engine, request);
        ASSERT_EQ(sink->images.size(), 1u);
        EXPECT_EQ(sink->started.steps, 2 + 3);
      }
    }
  }
}

TEST(SmallStrengths, DoNotHideStepsThatAreTooMany) {
  const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
  ImageRequest request;
  request.prompt = "a red cat";
  request.steps = 2;
  request.sampler = "LCM";
  request.strength_rule = StrengthRule::all;
  request.hires = HiresFix{.scale = 1.5f, .steps = 60, .strength = 0.5f};
  const auto sink = made(*engine, request);
  ASSERT_EQ(sink->failures.size(), 1u);
  EXPECT_THAT(sink->failures[0].message, testing::HasSubstr("more than the 50"));
}

}  // namespace
}  // namespace rbee::engine
