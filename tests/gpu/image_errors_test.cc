// The picture engine over the fake drivers. Each driver call fails at one place after another: a
// picture must end properly, the next must succeed, and nothing may be left behind.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "rbee/engine/image/engine.h"
#include "rbee/models/image/image_model.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using harness::FakeLibrary;
using harness::Vendor;

class Ends final : public ImageSink {
 public:
  void on_started(const ImageStarted&) noexcept override {}
  void on_progress(const ImageProgress&) noexcept override {}
  void on_preview(const ImagePreview&) noexcept override {}
  void on_image(ImageReady&&) noexcept override {}
  void on_finished(const ImageFinished&) noexcept override { end(std::nullopt); }
  void on_failed(const ImageFailed& failed) noexcept override { end(failed.code); }
  // The error code, or nothing if it succeeded.
  std::optional<Code> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return ended_; }));
    return failed_;
  }

 private:
  void end(std::optional<Code> failed) {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    failed_ = failed;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::optional<Code> failed_;
};

class ImageErrorsTest : public ::testing::TestWithParam<Vendor> {
 protected:
  ImageErrorsTest() {
    fs::copy(test::image_data("tokenizer"), model_.path() / "tokenizer",
             fs::copy_options::recursive);
  }
  // Fresh memory is zeros, so pictures of kernels that do nothing are grey.
  void SetUp() override {
    setenv("RBEE_FAKE_FILL", "0", 1);
    harness::open_fake_products(GetParam());
  }
  void TearDown() override { unsetenv("RBEE_FAKE_FILL"); }

  std::unique_ptr<ImageEngine> engine_on(Device& device, bool offload) const {
    ImageSourceOptions options{.device = &device};
    const std::vector<std::string> all{"all"};
    if (offload) options.offload = models::offloaded_parts(all);
    return make_image_engine(load_image_source(model_.path(), options));
  }
  static std::optional<Code> picture(ImageEngine& engine) {
    const auto sink = std::make_shared<Ends>();
    ImageRequest request;
    request.prompt = "x";
    request.steps = 6;  // enough for a capture
    request.width = request.height = 64;
    engine.submit(std::move(request), sink);
    return sink->wait();
  }

  // Calls of that name run out of memory, at load or in a picture. Returns how many ended one.
  int sweep(const char* cuda, const char* rocm, bool offload) {
    const FakeLibrary library(GetParam());
    const auto driver = library.open();
    gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
    picture(*engine_on(device, offload));  // modules are loaded
    const std::string before = library.live_objects();
    int failures = 0;
    int nth = 1;
    for (bool reached = true; reached; nth += 1 + 2 * nth) {
      SCOPED_TRACE(cat(cuda, " number ", nth, offload ? ", offloaded" : ""));
      // Everything cached goes back to the driver.
      EXPECT_THROW(device.allocate(size_t{1} << 40, device.default_stream()), Error);
      const int64_t calls = library.calls(cuda, rocm);
      library.fail(cuda, rocm, nth, fake::kOutOfMemory, fake::Then::again);
      std::unique_ptr<ImageEngine> engine;
      try {
        engine = engine_on(device, offload);
        if (const auto code = picture(*engine)) {
          ++failures;
          EXPECT_EQ(*code, Code::out_of_memory);
        }
      } catch (const Error& error) {
        ++failures;
        EXPECT_EQ(error.code(), Code::out_of_memory) << error.what();
      }
      reached = library.calls(cuda, rocm) - calls >= nth;
      library.fail(cuda, rocm, 1 << 30, fake::kSuccess);
      if (engine) EXPECT_FALSE(picture(*engine)) << "the next one";
      engine.reset();
      EXPECT_EQ(device.allocator_stats().in_use, 0);
      EXPECT_EQ(library.live_objects(), before);
      EXPECT_EQ(library.violation(), "");
    }
    return failures;
  }

  test::ImageFolder model_{"sd1"};
};

TEST_P(ImageErrorsTest, ALackOfMemoryEndsAPictureAndLeavesNothing) {
  EXPECT_GT(sweep("cuMemAlloc_v2", "hipMalloc", false), 0);
  EXPECT_GT(sweep("cuGraphInstantiateWithFlags", "hipGraphInstantiate", false), 0);
  EXPECT_GT(sweep("cuGraphLaunch", "hipGraphLaunch", false), 0);
  EXPECT_GT(sweep("cuLaunchKernelEx", "hipModuleLaunchKernel", false), 0);
}

TEST_P(ImageErrorsTest, PartsThatAreElsewhereComeBackAfterIt) {
  EXPECT_GT(sweep("cuMemAlloc_v2", "hipMalloc", true), 0);
  EXPECT_GT(sweep("cuMemcpyHtoDAsync_v2", "hipMemcpyAsync", true), 0);
  // Without pinned memory, the parts do without it.
  EXPECT_EQ(sweep("cuMemHostAlloc", "hipHostMalloc", true), 0);
}

INSTANTIATE_TEST_SUITE_P(Vendors, ImageErrorsTest, harness::each_vendor(), harness::name_of_vendor);

}  // namespace
}  // namespace rbee::engine
