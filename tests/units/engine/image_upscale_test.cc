// Pictures that networks enlarge: in tiles, after the VAE and between two passes.

#include "rbee/engine/image/upscale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "rbee/engine/image/settings.h"
#include "rbee/io/image/png.h"
#include "tests/checkpoints/made_upscaler.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::HasSubstr;

std::unique_ptr<models::Upscaler> network_of(models::RrdbShape shape, Device& device) {
  shape.blocks = 1;
  shape.width = 8;
  shape.growth = 4;
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) /
      cat(testing::UnitTest::GetInstance()->current_test_info()->name(), ".safetensors");
  test::write_safetensors(file, test::made_upscaler(shape));
  auto out = models::load_upscaler(file, device, DType::f32);
  std::filesystem::remove(file);
  return out;
}

io::Pixels waves(int32_t width, int32_t height) {
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      for (int32_t c = 0; c < 3; ++c) {
        const double value = std::sin(0.21 * x + c) * std::cos(0.17 * y) * 90 + 128;
        out.values.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return out;
}

Device& device() {
  static const ImageSource source = fake_source(half_noise);
  return *source.device;
}

struct Differences {
  int alone = 0, shared = 0;  // largest error in pixels of one tile, and of several tiles
};

// A pixel of the network depends on 20 others to each side, so pixels that only one tile covers do
// not depend on its inner edges.
TEST(Upscaling, InTilesAgreesWithTheWhole) {
  const auto network = network_of({.doublings = 1}, device());
  const io::Pixels small = waves(112, 80);
  const io::Pixels whole = upscaled(*network, small, device(), {.tile = 1024, .overlap = 32});
  const io::Pixels tiles = upscaled(*network, small, device(), {.tile = 64, .overlap = 32});
  ASSERT_EQ(whole.width, 224);
  ASSERT_EQ(tiles.height, 160);
  Differences worst;
  for (int32_t y = 0; y < tiles.height; ++y) {
    for (int32_t x = 0; x < tiles.width; ++x) {
      // Columns from 0, 32 and 48, rows from 0 and 16.
      const bool alone = (x < 64 || x >= 192) && (y < 32 || y >= 128);
      int& most = alone ? worst.alone : worst.shared;
      for (int32_t c = 0; c < 3; ++c) {
        const auto at = static_cast<size_t>(y * tiles.width + x) * 3 + static_cast<size_t>(c);
        most = std::max(most, std::abs(tiles.values[at] - whole.values[at]));
      }
    }
  }
  EXPECT_LE(worst.alone, 1);
  EXPECT_LE(worst.shared, 3);
}

TEST(Upscaling, TakesSidesThatAreNoMultiplesOfTheNetworksSquares) {
  const auto network = network_of({.unshuffle = 2, .doublings = 2}, device());
  const io::Pixels odd = waves(13, 9);
  const io::Pixels larger = upscaled(*network, odd, device());
  EXPECT_EQ(larger.width, 26);
  EXPECT_EQ(larger.height, 18);
  EXPECT_EQ(larger.values.size(), size_t{26 * 18 * 3});
}

// Ignores opacity.
TEST(Upscaling, GivesColoursAlone) {
  const auto network = network_of({.doublings = 0}, device());
  const io::Pixels plain = waves(16, 16);
  io::Pixels sheer{.width = 16, .height = 16, .channels = 4, .values = {}};
  for (size_t i = 0; i < plain.values.size(); i += 3) {
    sheer.values.insert(sheer.values.end(), plain.values.begin() + static_cast<int64_t>(i),
                        plain.values.begin() + static_cast<int64_t>(i) + 3);
    sheer.values.push_back(7);
  }
  EXPECT_EQ(upscaled(*network, sheer, device()).values, upscaled(*network, plain, device()).values);
}

class UpscalingEngine : public testing::Test {
 protected:
  UpscalingEngine() {
    ImageSource source = fake_source(half_noise);
    source.upscalers.push_back({"made-x2", network_of({.doublings = 1}, *source.device)});
    fill_model_info(source, "");
    engine_ = make_image_engine(std::move(source), {.warm_up = false});
    request_.prompt = "a red cat";
    request_.steps = 2;
    request_.seed = 5;
  }
  std::shared_ptr<ImageRecorder> made() {
    auto sink = std::make_shared<ImageRecorder>();
    engine_->submit(request_, sink);
    EXPECT_TRUE(sink->wait());
    return sink;
  }

  std::unique_ptr<ImageEngine> engine_;
  ImageRequest request_;
};

TEST_F(UpscalingEngine, EnlargesWhatTheVaeMakes) {
  const io::Pixels small = io::decode_png(made()->images.front().file, "small");
  request_.upscaler = "made-x2";
  const auto sink = made();
  EXPECT_EQ(sink->started.width, 128);
  const ImageReady& ready = sink->images.front();
  EXPECT_EQ(ready.width, 128);
  EXPECT_THAT(ready.parameters, HasSubstr("Size: 64x64"));
  EXPECT_THAT(ready.parameters, HasSubstr("Postprocess upscale by: 2, Postprocess upscaler: made"));
  const auto network = network_of({.doublings = 1}, device());
  EXPECT_EQ(io::decode_png(ready.file, "large").values, upscaled(*network, small, device()).values);
}

TEST_F(UpscalingEngine, EnlargesWhatASecondPassStartsFrom) {
  request_.hires = HiresFix{.scale = 1.5f, .upscaler = "made-x2"};
  const auto sink = made();
  ASSERT_EQ(sink->images.size(), 1u);
  EXPECT_EQ(sink->images.front().width, 96);
  EXPECT_THAT(sink->images.front().parameters, HasSubstr("Hires upscaler: made-x2"));
  request_.hires->upscaler = "Lanczos";
  EXPECT_NE(made()->images.front().file, sink->images.front().file);
}

TEST_F(UpscalingEngine, EnlargesPicturesBetweenRequests) {
  const auto network = network_of({.doublings = 1}, device());
  const io::Pixels small = waves(24, 16);
  auto running = std::make_shared<ImageRecorder>();
  engine_->submit(request_, running);
  EXPECT_EQ(engine_->upscale("made-x2", small, {}).values,
            upscaled(*network, small, device()).values);
  EXPECT_TRUE(running->wait());
  harness::expect_error("upscaler", "\"other\"", "", [&] { engine_->upscale("other", small, {}); });
  engine_->stop();
  EXPECT_THROW(engine_->upscale("made-x2", small, {}), Error);
}

// Cancels its request at the first reported tile.
class TileCanceller final : public ImageRecorder {
 public:
  explicit TileCanceller(ImageEngine& engine) : engine_(engine) {}
  void on_progress(const ImageProgress& event) noexcept override {
    ImageRecorder::on_progress(event);
    if (event.tiles.total > 0) engine_.cancel("tiles");
  }

 private:
  ImageEngine& engine_;
};

TEST_F(UpscalingEngine, TellsTilesAndEndsBetweenThem) {
  request_.job_id = "tiles";
  request_.width = request_.height = 256;
  for (const bool second_pass : {false, true}) {
    SCOPED_TRACE(second_pass);
    request_.upscaler = second_pass ? "" : "made-x2";
    request_.hires.reset();
    if (second_pass) request_.hires = HiresFix{.scale = 1.5f, .upscaler = "made-x2"};
    std::vector<std::pair<int32_t, int32_t>> told;
    const auto whole = made();
    for (const ImageProgress& event : whole->progress) {
      if (event.tiles.total == 0) continue;
      told.emplace_back(event.tiles.done, event.tiles.total);
      EXPECT_EQ(event.step, 2);
    }
    EXPECT_THAT(told, testing::ElementsAre(std::pair{1, 4}, std::pair{2, 4}, std::pair{3, 4},
                                           std::pair{4, 4}));
    auto sink = std::make_shared<TileCanceller>(*engine_);
    engine_->submit(request_, sink);
    EXPECT_TRUE(sink->wait());
    EXPECT_TRUE(sink->finished.cancelled);
    EXPECT_TRUE(sink->images.empty());
    ASSERT_FALSE(sink->progress.empty());
    EXPECT_EQ(sink->progress.back().tiles.done, 1);
  }
}

TEST_F(UpscalingEngine, EndsPicturesThatAreNotWantedBetweenTiles) {
  int32_t tiles = 0;
  const UpscaleHooks hooks{.going_on = [&] { return tiles == 0; },
                           .tile = [&](const TileProgress& now) { tiles = now.done; }};
  try {
    engine_->upscale("made-x2", waves(256, 256), hooks);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::cancelled);
  }
  EXPECT_EQ(tiles, 1);
}

// The second client's request arrives after the first tile of the first client's picture.
TEST(Upscaling, ClientsTakeTurnsBetweenTiles) {
  ImageSource source = fake_source(half_noise);
  source.upscalers.push_back({"made-x2", network_of({.doublings = 1}, *source.device)});
  fill_model_info(source, "");
  const auto engine = make_image_engine(std::move(source),
                                        {.slice = std::chrono::milliseconds(0), .warm_up = false});
  std::atomic<int32_t> done = 0;
  std::atomic<bool> waits = false;
  std::future<int32_t> second;
  const auto ask = [&]() -> int32_t {
    engine->upscale("made-x2", waves(16, 16),
                    {.client = "second", .going_on = [&] { return waits = true; }, .tile = {}});
    return done;
  };
  const auto going_on = [&] {
    while (done > 0 && !waits) std::this_thread::yield();
    return true;
  };
  engine->upscale("made-x2", waves(256, 256),
                  {.client = "first", .going_on = going_on, .tile = [&](const TileProgress& now) {
                     if (++done == 1) second = std::async(std::launch::async, ask);
                     EXPECT_EQ(now.total, 4);
                   }});
  EXPECT_LT(second.get(), 4);
}

// A request that waits for a picture gets its cancelled event at once.
TEST_F(UpscalingEngine, DropsRequestsBetweenTiles) {
  request_.job_id = "waiting";
  const auto waiting = std::make_shared<ImageRecorder>();
  int32_t tiles = 0, told = 0;  // after how many tiles
  const UpscaleHooks hooks{.going_on = {}, .tile = [&](const TileProgress& now) {
                             tiles = now.done;
                             if (tiles == 1) {
                               engine_->submit(request_, waiting);
                               engine_->cancel("waiting");
                             }
                             if (told == 0 && engine_->stats().requests_cancelled == 1) {
                               told = tiles;
                             }
                           }};
  engine_->upscale("made-x2", waves(256, 256), hooks);
  EXPECT_EQ(tiles, 4);
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(waiting->wait());
  EXPECT_TRUE(waiting->finished.cancelled);
}

// Steps are slow until the picture that waits for them has been dropped.
TEST(Upscaling, EndsWhileItWaitsForARequest) {
  constexpr int32_t kSteps = 150;
  std::atomic<int32_t> calls = 0;
  std::atomic<bool> dropped = false;
  ImageSource source = fake_source([&](const Tensor& x) {
    ++calls;
    if (!dropped) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return half_noise(x);
  });
  source.upscalers.push_back({"made-x2", network_of({.doublings = 1}, *source.device)});
  fill_model_info(source, "");
  const auto engine = make_image_engine(std::move(source), {.warm_up = false});
  ImageRequest request;
  request.prompt = "a red cat";
  request.steps = kSteps;
  auto sink = std::make_shared<ImageRecorder>();
  engine->submit(request, sink);
  while (calls == 0) std::this_thread::yield();
  const UpscaleHooks hooks{.going_on = [] { return false; }, .tile = {}};
  EXPECT_THROW(engine->upscale("made-x2", waves(16, 16), hooks), Error);
  EXPECT_LT(calls, kSteps);
  dropped = true;
  EXPECT_TRUE(sink->wait());
}

TEST_F(UpscalingEngine, RefusesPicturesThatWouldBecomeTooLarge) {
  ImageSource source = fake_source(half_noise);
  source.upscalers.push_back({"made-x16", network_of({.doublings = 4}, *source.device)});
  fill_model_info(source, "");
  const auto engine = make_image_engine(std::move(source), {.warm_up = false});
  const auto submit = [&] { engine->submit(request_, std::make_shared<ImageRecorder>()); };
  request_.width = request_.height = 520;
  request_.upscaler = "made-x16";
  harness::expect_error("upscaler", "520 x 520", "8192", submit);
  request_.upscaler.clear();
  request_.hires = HiresFix{.upscaler = "made-x16"};
  harness::expect_error("hires.upscaler", "520 x 520", "8192", submit);
  harness::expect_error("image", "513 x 8", "8192",
                        [&] { engine->upscale("made-x16", waves(513, 8), {}); });
}

// Files of all pictures of a request are held until it ends.
TEST_F(UpscalingEngine, RefusesMorePixelsThanARequestMayHold) {
  request_.width = request_.height = 2048;
  request_.upscaler = "made-x2";
  request_.count = 5;
  harness::expect_error("count", "5 pictures of 16777216 pixels", "67108864",
                        [&] { engine_->submit(request_, std::make_shared<ImageRecorder>()); });
}

TEST_F(UpscalingEngine, RefusesNamesThatItHasNot) {
  const auto submit = [&] { engine_->submit(request_, std::make_shared<ImageRecorder>()); };
  ASSERT_EQ(engine_->model().upscalers.size(), 1u);
  EXPECT_EQ(engine_->model().upscalers.front().scale, 2);
  request_.upscaler = "other";
  harness::expect_error("upscaler", "\"other\"", "made-x2", submit);
  request_.upscaler.clear();
  request_.hires = HiresFix{.upscaler = "other"};
  harness::expect_error("hires.upscaler", "\"other\"", "made-x2", submit);
  ImageRequest request;
  request.upscaler = "made-x2";
  const ImageSource without = fake_source(half_noise);
  harness::expect_error("upscaler", "no network", "--upscale-model",
                        [&] { resolve(without, request); });
}

}  // namespace
}  // namespace rbee::engine
