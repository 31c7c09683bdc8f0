// Requests that a client hurries or cancels while the engine does something other than a step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/engine/image/engine.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

// Hurries its request after the first picture, before the steps of the next.
class HurryBetweenPictures final : public ImageRecorder {
 public:
  HurryBetweenPictures(ImageEngine& engine, Hurry how) : engine_(engine), how_(how) {}
  void on_image(ImageReady&& event) noexcept override {
    if (event.index == 0) engine_.hurry("job", how_);
    ImageRecorder::on_image(std::move(event));
  }

 private:
  ImageEngine& engine_;
  const Hurry how_;
};

// As AUTOMATIC1111: after an interruption no further picture begins, and a skip is forgotten at the
// next picture.
TEST(HurriedRequests, SpoilNoPictureThatHasNotBegun) {
  struct Case {
    Hurry how;
    size_t images;
    int32_t steps;
  };
  for (const Case& wanted : {Case{Hurry::pictures, 3, 4 + 4 + 4}, Case{Hurry::request, 1, 4}}) {
    const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
    ImageRequest request;
    request.job_id = "job";
    request.prompt = "a red cat";
    request.steps = 4;
    request.count = 3;
    const auto sink = std::make_shared<HurryBetweenPictures>(*engine, wanted.how);
    engine->submit(request, sink);
    ASSERT_TRUE(sink->wait());
    EXPECT_EQ(sink->images.size(), wanted.images);
    EXPECT_EQ(sink->finished.steps, wanted.steps);
    EXPECT_FALSE(sink->finished.cancelled);
  }
}

// A waiting request gets its cancelled event at once, also while texts are encoded.
TEST(CancelledRequests, AreToldBetweenTexts) {
  ImageSource source = fake_source(half_noise);
  std::unique_ptr<ImageEngine> engine;
  ImageRequest request;
  request.steps = 4;
  const auto waiting = std::make_shared<ImageRecorder>();
  std::vector<uint64_t> told;
  source.model.text[0].encoder =
      std::make_unique<CallbackTextEncoder>([&](const models::TextInput&) {
        told.push_back(engine->stats().requests_cancelled);
        if (told.size() > 1) return;
        request.job_id = "waiting";
        engine->submit(request, waiting);
        engine->cancel("waiting");
      });
  engine = make_image_engine(std::move(source), {.warm_up = false});
  request.prompt = "[a|b|c|d]";  // five texts with the negative one; four go together
  const auto running = std::make_shared<ImageRecorder>();
  engine->submit(request, running);
  EXPECT_TRUE(running->wait());
  EXPECT_TRUE(waiting->wait());
  EXPECT_TRUE(waiting->finished.cancelled);
  EXPECT_THAT(told, testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace rbee::engine
