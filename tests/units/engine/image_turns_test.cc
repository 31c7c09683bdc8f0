// Clients that share an image model: the order of turns, which must not change any picture.

#include "rbee/engine/image/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "rbee/engine/image/engine.h"
#include "rbee/engine/image/repaint.h"
#include "rbee/io/image/png.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::ElementsAre;

ImageTurnPtr turn_of(std::string client, std::string adapters = "") {
  auto out = std::make_shared<ImageTurn>();
  out->client = std::move(client);
  out->adapters = std::move(adapters);
  return out;
}

// Takes a turn as the engine does.
ImageTurnPtr take(const ImageTurns& turns) {
  ImageTurnPtr out = turns.next();
  if (out != nullptr) {
    out->begun = true;
    out->resting = false;
  }
  return out;
}

TEST(ImageTurns, AreOfWhoHadTheLeastTime) {
  ImageTurns turns({});
  EXPECT_EQ(turns.next(), nullptr);
  const auto large = turn_of("a"), second = turn_of("a"), small = turn_of("b");
  turns.add(large);
  turns.add(second);
  EXPECT_EQ(take(turns), large);
  turns.add(small);
  turns.spend(*large, 60);
  // A newcomer starts with the time of the client that had least, then counts from there.
  EXPECT_EQ(take(turns), small);
  turns.spend(*small, 20);
  EXPECT_EQ(take(turns), small);
  turns.spend(*small, 50);
  EXPECT_EQ(take(turns), large);
  turns.remove(*large);
  EXPECT_EQ(take(turns), second);
  turns.remove(*second);
  turns.remove(*second);
  EXPECT_EQ(take(turns), small);
}

TEST(ImageTurns, OfOtherAdaptersWaitUntilTheOthersRest) {
  ImageTurns turns({});
  const auto plain = turn_of("a"), other = turn_of("b", "x"), third = turn_of("c");
  turns.add(plain);
  EXPECT_EQ(take(turns), plain);
  turns.spend(*plain, 1);
  turns.add(other);
  turns.spend(*plain, 1);
  turns.add(third);
  turns.spend(*plain, 1);
  EXPECT_EQ(take(turns), third);  // the newest client goes first
  third->resting = true;
  turns.spend(*third, 9);
  // `other` is next but does not fit; another start of `third` would keep it waiting.
  EXPECT_EQ(take(turns), plain);
  plain->resting = true;
  turns.spend(*plain, 1);
  EXPECT_EQ(take(turns), other);
  turns.spend(*other, 1);
  EXPECT_EQ(take(turns), other);
}

TEST(ImageTurns, HaveBounds) {
  ImageTurns turns({.working = 3, .with_pictures = 1, .decoded_pixels = 100});
  std::vector<ImageTurnPtr> all;
  for (const char* client : {"a", "b", "c", "d"}) {
    all.push_back(turn_of(client));
    all.back()->picture_pixels = client[0] < 'c' ? 10 : 0;
    turns.add(all.back());
    if (const ImageTurnPtr got = take(turns)) {
      got->holds_pictures = got->picture_pixels > 0;
      turns.spend(*got, all.size());
    }
  }
  const auto working = [&] {
    std::string out;
    for (const ImageTurnPtr& turn : all) out += turn->resting ? "" : turn->client;
    return out;
  };
  EXPECT_EQ(working(), "acd");  // b has pictures, as a has
  all[0]->decoded_pixels = 80;
  all[2]->wanted_pixels = 30;
  all[3]->wanted_pixels = 20;
  turns.spend(*all[0], 100);
  EXPECT_EQ(take(turns), all[3]);
  turns.spend(*all[3], 200);
  EXPECT_EQ(take(turns), all[0]);
  all[0]->decoded_pixels = 0;
  all[0]->resting = true;
  all[0]->holds_pictures = false;
  turns.spend(*all[0], 500);
  EXPECT_EQ(take(turns), all[1]);  // it never had a turn
  turns.spend(*all[1], 1000);
  EXPECT_EQ(take(turns), all[2]);
  // A client leaves at once, but not before its request has begun.
  const auto late = turn_of("e");
  turns.add(late);
  late->leaving = all[1]->leaving = true;
  EXPECT_EQ(take(turns), all[1]);
}

TEST(ImageTurns, HoldSoManyPixelsOfPictures) {
  ImageTurns turns({.with_pictures = 3, .picture_pixels = 100});
  const auto first = turn_of("a"), large = turn_of("b"), small = turn_of("c");
  first->picture_pixels = 200;  // may have more than all together
  large->picture_pixels = 60;
  small->picture_pixels = 40;
  for (const auto& turn : {first, large, small}) turns.add(turn);
  const auto take_next = [&] {
    const ImageTurnPtr out = take(turns);
    if (out != nullptr) {
      out->holds_pictures = out->beside = true;
      turns.spend(*out, 1);
    }
    return out;
  };
  EXPECT_EQ(take_next(), small);  // the newest client goes first
  EXPECT_EQ(take_next(), large);
  EXPECT_EQ(take_next(), nullptr);
  turns.remove(*small);
  EXPECT_EQ(take_next(), nullptr);
  turns.remove(*large);
  EXPECT_EQ(take_next(), first);
}

TEST(ImageTurns, GoOnWhileAnotherReadsItsPictures) {
  ImageTurns turns({.with_pictures = 1, .alone = true});
  const auto reader = turn_of("a"), plain = turn_of("b"), later = turn_of("c");
  reader->picture_pixels = later->picture_pixels = 10;
  turns.add(reader);
  EXPECT_EQ(take(turns), reader);
  reader->beside = reader->resting = reader->holds_pictures = true;
  turns.add(plain);
  turns.add(later);
  reader->leaving = true;  // ends after it stops reading
  turns.spend(*later, 1);
  EXPECT_EQ(take(turns), plain);
  turns.remove(*plain);
  EXPECT_EQ(take(turns), nullptr);  // two may not hold pictures at once
  reader->beside = reader->leaving = false;
  EXPECT_EQ(take(turns), reader);
}

TEST(ImageTurns, OfOneAloneAreNotPaused) {
  ImageTurns turns({.alone = true});
  const auto first = turn_of("a"), second = turn_of("b");
  turns.add(first);
  EXPECT_EQ(take(turns), first);
  turns.add(second);
  turns.spend(*first, 9);
  EXPECT_EQ(take(turns), first);
  first->resting = true;
  EXPECT_EQ(take(turns), second);
}

// The order of steps and ends of several requests: `order` has a letter for each step.
class TakingTurns : public testing::Test {
 protected:
  TakingTurns() {
    ImageSource source = fake_source([this](const Tensor& x) {
      if (stands_.exchange(false)) {
        standing_.set_value();
        open_.get_future().wait();
      }
      return half_noise(x);
    });
    engine_ = make_image_engine(std::move(source),
                                {.max_waiting = 8, .slice = std::chrono::milliseconds(0)});
  }

  ImageRequest request_of(const std::string& client, int32_t count, int32_t steps) const {
    ImageRequest out;
    out.job_id = out.client = client;
    out.prompt = "a red cat";
    out.seed = 5;
    out.sampler = "Euler a";  // draws in each step
    out.count = count;
    out.batch = 1;
    out.steps = steps;
    return out;
  }

  std::shared_ptr<ImageRecorder> submit(const ImageRequest& request) {
    auto sink = std::make_shared<Noting>(*this, request.client.front());
    engine_->submit(request, sink);
    return sink;
  }

  // The first request waits at its first step until the others are there, and longer.
  std::vector<std::shared_ptr<ImageRecorder>> together(const std::vector<ImageRequest>& requests) {
    stands_ = true;
    std::vector<std::shared_ptr<ImageRecorder>> out;
    for (const ImageRequest& request : requests) {
      out.push_back(submit(request));
      if (out.size() == 1) standing_.get_future().wait();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    open_.set_value();
    for (const auto& sink : out) EXPECT_TRUE(sink->wait());
    return out;
  }

  class Noting final : public ImageRecorder {
   public:
    Noting(TakingTurns& test, char name) : test_(test), name_(name) {}
    void on_progress(const ImageProgress& event) noexcept override {
      test_.note(name_);
      ImageRecorder::on_progress(event);
    }
    void on_finished(const ImageFinished& event) noexcept override {
      test_.note(static_cast<char>(name_ - 'a' + 'A'));
      ImageRecorder::on_finished(event);
    }

   private:
    TakingTurns& test_;
    const char name_;
  };
  void note(char what) {
    const std::scoped_lock lock(mutex_);
    order_ += what;
  }

  std::atomic<bool> stands_{false};
  std::promise<void> standing_, open_;
  std::mutex mutex_;
  std::string order_;  // a letter for each step, a capital one for an end
  std::unique_ptr<ImageEngine> engine_;
};

std::vector<std::string> files_of(const ImageRecorder& sink) {
  std::vector<std::string> out;
  for (const ImageReady& image : sink.images) out.push_back(image.file);
  return out;
}

TEST_F(TakingTurns, SmallRequestsPassLargeOnesBetweenSteps) {
  ImageRequest many = request_of("m", 16, 20), one = request_of("s", 1, 2);
  many.preview_interval = 7;
  one.seed = 77;
  const auto alone_many = submit(many);
  ASSERT_TRUE(alone_many->wait());
  const auto alone_one = submit(one);
  ASSERT_TRUE(alone_one->wait());
  order_.clear();

  const auto sinks = together({many, one});
  // The large one's first step took as long as all of the small one.
  EXPECT_THAT(order_, testing::StartsWith("ms"));
  EXPECT_LT(order_.rfind('s'), 20u) << order_;
  EXPECT_EQ(files_of(*sinks[0]), files_of(*alone_many));
  EXPECT_EQ(files_of(*sinks[1]), files_of(*alone_one));
  EXPECT_EQ(sinks[0]->order, alone_many->order);
  ASSERT_EQ(sinks[0]->previews.size(), alone_many->previews.size());
  for (size_t i = 0; i < sinks[0]->previews.size(); ++i) {
    EXPECT_EQ(sinks[0]->previews[i].png, alone_many->previews[i].png);
  }
  EXPECT_EQ(sinks[0]->progress.back().step, 320);
  const ImageStats stats = engine_->stats();
  EXPECT_EQ(stats.requests_finished, 4u);
  EXPECT_EQ(stats.images, 34u);
  EXPECT_EQ(stats.running + stats.waiting, 0);
}

TEST_F(TakingTurns, AClientsOwnRequestsComeInOrder) {
  ImageRequest second = request_of("a", 1, 2);
  second.job_id = "second";
  const auto sinks = together({request_of("a", 2, 2), second});
  EXPECT_EQ(sinks[0]->images.size(), 2u);
  // A request is over before its last event.
  EXPECT_THAT(order_, testing::AnyOf("aaaaAaaA", "aaaaaAaA", "aaaaaaAA"));
}

// Decoded pictures are dropped between two batches, and read again.
TEST_F(TakingTurns, PicturesAndSecondPassesStayTheSame) {
  io::Pixels picture{.width = 64, .height = 64, .channels = 3, .values = {}};
  for (int i = 0; i < 64 * 64 * 3; ++i) picture.values.push_back(static_cast<uint8_t>(i * 7));
  std::vector<ImageRequest> requests;
  for (const char* client : {"a", "b", "c", "d"}) {
    ImageRequest request = request_of(client, 3, 5);
    request.seed = static_cast<uint64_t>(client[0]);
    request.variation.strength = 0.25f;
    request.variation.seed = 9;
    if (client[0] != 'd') request.init_image = io::encode_png(picture);
    if (client[0] == 'b') request.hires = HiresFix{.scale = 2, .upscaler = "Lanczos"};
    if (client[0] == 'c') request.mask_image = request.init_image;
    requests.push_back(std::move(request));
  }
  std::vector<std::vector<std::string>> alone;
  for (const ImageRequest& request : requests) {
    const auto sink = submit(request);
    ASSERT_TRUE(sink->wait());
    ASSERT_EQ(sink->images.size(), 3u);
    alone.push_back(files_of(*sink));
  }
  const auto sinks = together(requests);
  for (size_t i = 0; i < sinks.size(); ++i) EXPECT_EQ(files_of(*sinks[i]), alone[i]) << i;
}

// Black: quick to write, slow to scale down.
io::Pixels large_picture(int32_t height = 1500) {
  io::Pixels out{.width = 6000, .height = height, .channels = 3, .values = {}};
  out.values.resize(size_t{6000} * static_cast<size_t>(height) * 3);
  return out;
}

TEST_F(TakingTurns, OthersAreDrawnWhileAPictureIsRead) {
  ImageRequest reader = request_of("r", 1, 2);
  reader.init_image = io::encode_png(large_picture());
  reader.strength = 1;
  together({request_of("m", 1, 1), reader, request_of("s", 1, 5)});
  EXPECT_LT(order_.find('S'), order_.find('r')) << order_;
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Pasting the painted part back and coding the file need no model.
TEST_F(TakingTurns, OthersAreDrawnWhileAPictureIsFinished) {
  const io::Pixels whole = large_picture(3000);
  ImageRequest large = request_of("l", 1, 1);
  large.init_image = io::encode_png(whole);
  large.mask_image = io::encode_png(
      {.width = 8, .height = 8, .channels = 3, .values = std::vector<uint8_t>(192, 255)});
  large.mask_only = true;
  large.strength = 1;
  const auto sink = submit(large);
  double longest = 0;
  const auto goes_on = [&] {
    const ImageStats stats = engine_->stats();
    return stats.running + stats.waiting > 0;
  };
  while (goes_on()) {
    longest = std::max(longest, seconds_of([&] { submit(request_of("s", 1, 1))->wait(); }));
  }
  ASSERT_EQ(sink->images.size(), 1u);
  EXPECT_EQ(sink->images[0].width, whole.width);
  const double finishing = seconds_of([&] {
    const io::Pixels part = io::resized(whole, 64, 64);
    const Region all{0, 0, whole.width, whole.height};
    const Mask share{whole.width, whole.height, std::vector<uint8_t>(whole.values.size() / 3, 255)};
    io::encode_png(pasted(part, whole, all, share));
  });
  EXPECT_LT(longest, finishing / 4);
}

TEST_F(TakingTurns, ReadingEndsWhenTheRequestIsCancelled) {
  ImageRequest reader = request_of("r", 1, 2);
  reader.init_image = io::encode_png(large_picture());
  stands_ = true;
  const auto first = submit(request_of("m", 1, 1));
  standing_.get_future().wait();
  const auto cancelled = submit(reader);
  open_.set_value();
  ASSERT_TRUE(first->wait());
  while (engine_->stats().waiting > 0) std::this_thread::yield();
  EXPECT_TRUE(engine_->cancel("r"));
  ASSERT_TRUE(cancelled->wait());
  EXPECT_TRUE(cancelled->finished.cancelled);
  EXPECT_EQ(order_.find('r'), std::string::npos) << order_;
  EXPECT_EQ(engine_->stats().requests_cancelled, 1u);
}

TEST_F(TakingTurns, PausedRequestsAreCancelledAtOnce) {
  class Cancelling final : public ImageRecorder {
   public:
    explicit Cancelling(ImageEngine& engine) : engine_(engine) {}
    void on_progress(const ImageProgress& event) noexcept override {
      if (event.step == 1) engine_.cancel("p");
      ImageRecorder::on_progress(event);
    }

   private:
    ImageEngine& engine_;
  };
  stands_ = true;
  const auto paused = submit(request_of("p", 4, 50));
  standing_.get_future().wait();
  const auto other = std::make_shared<Cancelling>(*engine_);
  engine_->submit(request_of("o", 1, 3), other);
  EXPECT_EQ(engine_->stats().running, 1);
  EXPECT_EQ(engine_->stats().waiting, 1);
  open_.set_value();
  ASSERT_TRUE(paused->wait());
  ASSERT_TRUE(other->wait());
  EXPECT_TRUE(paused->finished.cancelled);
  EXPECT_EQ(paused->finished.steps, 1);
  EXPECT_EQ(other->images.size(), 1u);
}

TEST_F(TakingTurns, AFullQueueHasPlaceForOthers) {
  stands_ = true;
  std::vector<std::shared_ptr<ImageRecorder>> sinks = {submit(request_of("a", 1, 1))};
  standing_.get_future().wait();
  for (int i = 0; i < 8; ++i) sinks.push_back(submit(request_of("a", 1, 1)));
  EXPECT_THROW(submit(request_of("a", 1, 1)), Error);
  for (int i = 0; i < 4; ++i) sinks.push_back(submit(request_of("b", 1, 1)));
  EXPECT_THROW(submit(request_of("b", 1, 1)), Error);
  open_.set_value();
  for (const auto& sink : sinks) EXPECT_TRUE(sink->wait());
}

}  // namespace
}  // namespace rbee::engine
