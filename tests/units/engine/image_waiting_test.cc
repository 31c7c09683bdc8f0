// The host memory that a request holds while it waits.

#include <gtest/gtest.h>
#include <malloc.h>

#include <future>

#include "rbee/engine/image/engine.h"
#include "rbee/engine/image/settings.h"
#include "rbee/io/image/png.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

// From ASan and TSan, whose allocators glibc does not count; null without them.
extern "C" [[gnu::weak]] size_t
__sanitizer_get_current_allocated_bytes();  // NOLINT(bugprone-reserved-identifier)

namespace rbee::engine {
namespace {

size_t allocated_bytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::string grey_png(int32_t side, uint8_t value) {
  io::Pixels out{.width = side, .height = side, .channels = 3, .values = {}};
  out.values.assign(static_cast<size_t>(side) * static_cast<size_t>(side) * 3, value);
  return io::encode_png(out);
}

// Repaints the middle of a large picture.
ImageRequest large_request() {
  constexpr int32_t kSide = 1024;
  ImageRequest out;
  out.prompt = "a red cat";
  out.steps = 1;
  out.seed = 5;
  out.init_image = grey_png(kSide, 200);
  out.mask_image = grey_png(kSide, 255);
  out.mask_only = true;
  return out;
}

// Stops a denoiser in its first call until the test releases it.
class Gate {
 public:
  FakeDenoiser::Output output() {
    return [this](const Tensor& x) {
      if (!std::exchange(reached_, true)) {
        standing.set_value();
        open.get_future().wait();
      }
      return half_noise(x);
    };
  }
  std::promise<void> standing, open;

 private:
  bool reached_ = false;
};

// Requests that wait for one stopped at the gate.
struct WaitingImageRequests : ::testing::Test {
  WaitingImageRequests() {
    engine->submit(large_request(), running);
    gate.standing.get_future().wait();
  }

  Gate gate;
  const std::unique_ptr<ImageEngine> engine =
      make_image_engine(fake_source(gate.output()), {.warm_up = false});
  const std::shared_ptr<ImageRecorder> running = std::make_shared<ImageRecorder>();
};

TEST_F(WaitingImageRequests, KeepTheirFilesAlone) {
  constexpr size_t kWaiting = 3, kMost = size_t{1} << 20;  // 5 MB each if decoded
  std::vector<std::shared_ptr<ImageRecorder>> waiting;
  const size_t before = allocated_bytes();
  for (size_t i = 0; i < kWaiting; ++i) {
    waiting.push_back(std::make_shared<ImageRecorder>());
    engine->submit(large_request(), waiting.back());
  }
  EXPECT_LT(allocated_bytes(), before + kWaiting * kMost);

  gate.open.set_value();
  ASSERT_TRUE(running->wait());
  for (const auto& sink : waiting) {
    ASSERT_TRUE(sink->wait());
    ASSERT_EQ(sink->images.size(), 1u);
    EXPECT_EQ(sink->images[0].width, 1024);
    EXPECT_EQ(sink->images[0].file, running->images[0].file);
  }
}

TEST_F(WaitingImageRequests, AreRefusedBeforeTheyWait) {
  const auto sink = std::make_shared<ImageRecorder>();
  ImageRequest cut = large_request();
  cut.init_image.resize(cut.init_image.size() / 2);
  harness::expect_error("init_image", "no whole PNG", "", [&] { engine->submit(cut, sink); });
  ImageRequest other = large_request();
  other.mask_image.resize(other.mask_image.size() / 2);
  harness::expect_error("mask_image", "no whole PNG", "", [&] { engine->submit(other, sink); });
  other.mask_image = large_request().mask_image;
  other.clip_skip = 3;
  harness::expect_error("clip_skip", "3", "2 layers", [&] { engine->submit(other, sink); });
  EXPECT_EQ(engine->stats().waiting, 0);
  gate.open.set_value();
  ASSERT_TRUE(running->wait());
}

// ControlNets' pictures are decoded on arrival; eight may be larger than everything else.
TEST(ControlPictures, AreKeptInTheSizesThatPassesRead) {
  const test::ImageFolder folder("sd1"), net("steer");
  std::filesystem::copy(test::image_data("tokenizer"), folder.path() / "tokenizer");
  const ImageSource source = load_image_source(
      folder.path(),
      {.device = fake_source(half_noise).device, .control_nets = {{net.path(), {}}}});
  constexpr size_t kControls = 8, kMost = size_t{1} << 20;  // 3 MB each if decoded
  ImageRequest request;
  request.width = request.height = 64;
  request.hires = HiresFix{};
  for (size_t i = 0; i < kControls; ++i) {
    request.controls.push_back({.name = "", .image = grey_png(1024, static_cast<uint8_t>(i))});
  }
  const size_t before = allocated_bytes();
  const ImageSettings settings = resolve(source, request);
  EXPECT_LT(allocated_bytes(), before + kMost);
  for (const size_t pass : {size_t{0}, size_t{1}}) {
    ASSERT_EQ(settings.controls[pass].size(), kControls);
    for (size_t i = 0; i < kControls; ++i) {
      const io::Pixels& picture = settings.controls[pass][i];
      EXPECT_EQ(picture.width, pass == 0 ? 64 : 128);
      EXPECT_EQ(picture.height, picture.width);
      EXPECT_EQ(picture.values.front(), i);
    }
  }
  // A wide picture: black, with white edges at left and right.
  io::Pixels wide{.width = 128, .height = 64, .channels = 3, .values = {}};
  for (int32_t i = 0; i < 128 * 64; ++i) {
    const bool edge = i % 128 < 16 || i % 128 >= 112;
    wide.values.insert(wide.values.end(), 3, edge ? uint8_t{255} : uint8_t{0});
  }
  request.controls = {{.name = "", .image = io::encode_png(wide), .fit = Fit::stretch}};
  EXPECT_EQ(resolve(source, request).controls[0].at(0).values.front(), 255);
  request.controls[0].fit = Fit::crop;
  const ImageSettings cut = resolve(source, request);
  for (const uint8_t value : cut.controls[0].at(0).values) ASSERT_EQ(value, 0);
}

}  // namespace
}  // namespace rbee::engine
