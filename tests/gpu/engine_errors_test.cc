// The text engines over the fake drivers. Each driver call fails at one place after another:
// requests that share steps must end properly, and nothing may be left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "rbee/engine/embedding/engine.h"
#include "tests/gpu/runtime_fixture.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

using harness::FakeLibrary;
using harness::Vendor;

// A driver call, by both vendors' names.
struct Call {
  const char* cuda;
  const char* rocm;
  fake::Then then = fake::Then::lost;  // how it loses the device
};

class EngineErrorsTest : public ::testing::TestWithParam<Vendor> {
 protected:
  // Fresh memory is zeros, so the logits of kernels that do nothing give text.
  void SetUp() override {
    setenv("RBEE_FAKE_FILL", "0", 1);
    harness::open_fake_products(GetParam());
  }
  void TearDown() override { unsetenv("RBEE_FAKE_FILL"); }

  // Runs requests of three lengths at the same time.
  static std::vector<std::shared_ptr<Recorder>> answers(TextEngine& engine) {
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (const char* prompt : {"a", "some words", "more words than the other two have"}) {
      try {
        sinks.push_back(submit(engine, greedy(prompt, 6)));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::device);  // from the request before
      }
    }
    for (const auto& sink : sinks) sink->wait();
    return sinks;
  }
  static std::unique_ptr<TextEngine> engine_on(Device& device) {
    return make_llm_engine(tiny_model(64, device), {.max_running = 3});
  }
  // How often an engine makes the call before it accepts requests.
  static int calls_at_start(const Call& call) {
    const FakeLibrary library(GetParam());
    const auto driver = library.open();
    gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
    const auto engine = engine_on(device);
    return static_cast<int>(library.calls(call.cuda, call.rocm));
  }
  // Makes the device give all cached memory back to the driver.
  static void trim(gpu::GpuDevice& device) {
    EXPECT_THROW(device.allocate(size_t{1} << 40, device.default_stream()), Error);
  }
};

TEST_P(EngineErrorsTest, ALackOfMemoryEndsRequestsAndLeavesNothing) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
  answers(*engine_on(device));  // modules are loaded
  const std::string before = library.live_objects();
  for (const Call& call :
       {Call{"cuMemAlloc_v2", "hipMalloc"}, Call{"cuMemHostAlloc", "hipHostMalloc"},
        Call{"cuStreamCreate", "hipStreamCreateWithFlags"},
        Call{"cuEventCreate", "hipEventCreateWithFlags"},
        Call{"cuStreamBeginCapture_v2", "hipStreamBeginCapture"},
        Call{"cuStreamEndCapture", "hipStreamEndCapture"},
        Call{"cuGraphInstantiateWithFlags", "hipGraphInstantiate"},
        Call{"cuGraphLaunch", "hipGraphLaunch"},
        Call{"cuLaunchKernelEx", "hipModuleLaunchKernel"}}) {
    int nth = 1;
    int failures = 0;
    for (bool reached = true; reached; nth += 1 + nth / 4) {
      SCOPED_TRACE(cat(call.cuda, " number ", nth));
      trim(device);
      const int64_t calls = library.calls(call.cuda, call.rocm);
      library.fail(call.cuda, call.rocm, nth, fake::kOutOfMemory, fake::Then::again);
      std::unique_ptr<TextEngine> engine;
      try {
        engine = engine_on(device);
        for (const auto& sink : answers(*engine)) {
          if (!sink->failed) continue;
          ++failures;
          EXPECT_EQ(sink->failed->code, Code::out_of_memory) << sink->failed->message;
        }
      } catch (const Error& error) {
        ++failures;
        EXPECT_EQ(error.code(), Code::out_of_memory) << error.what();
      }
      reached = library.calls(call.cuda, call.rocm) - calls >= nth;
      library.fail(call.cuda, call.rocm, 1 << 30, fake::kSuccess);
      if (engine) {
        EXPECT_TRUE(engine->stats().healthy);
        for (const auto& sink : answers(*engine)) EXPECT_TRUE(sink->finished);
        EXPECT_EQ(engine->stats().kv_blocks_used, 0);
      }
      engine.reset();
      EXPECT_EQ(device.allocator_stats().in_use, 0);
      EXPECT_EQ(library.live_objects(), before);
      EXPECT_EQ(library.violation(), "");
    }
    EXPECT_GT(failures, 0) << call.cuda;
  }
}

// The device is lost at a call's first use, during the capture of steps, and during answers.
TEST_P(EngineErrorsTest, ALostDeviceEndsEverythingAndLeavesNothing) {
  int64_t left = 0;
  for (const Call& call :
       {Call{"cuMemcpyHtoDAsync_v2", "hipMemcpyAsync"},
        Call{"cuMemcpyDtoHAsync_v2", "hipMemcpyAsync"},
        Call{"cuStreamSynchronize", "hipStreamSynchronize"},
        Call{"cuStreamWaitEvent", "hipStreamWaitEvent"}, Call{"cuEventRecord", "hipEventRecord"},
        Call{"cuStreamEndCapture", "hipStreamEndCapture"}, Call{"cuGraphLaunch", "hipGraphLaunch"},
        Call{"cuLaunchKernelEx", "hipModuleLaunchKernel"},
        // A kernel's fault is reported by a later call.
        Call{"cuGraphLaunch", "hipGraphLaunch", fake::Then::lost_later},
        Call{"cuLaunchKernelEx", "hipModuleLaunchKernel", fake::Then::lost_later}}) {
    const int start = calls_at_start(call);
    for (const int nth : {1, 2, 5, start / 2, start + 1, start + 4}) {
      SCOPED_TRACE(cat(call.cuda, " number ", nth));
      const FakeLibrary library(GetParam());
      const auto driver = library.open();
      gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
      std::unique_ptr<TextEngine> engine;
      library.fail(call.cuda, call.rocm, nth, fake::kLaunchFailed, call.then);
      try {
        engine = engine_on(device);
        const auto sinks = answers(*engine);
        const bool lost = library.calls(call.cuda, call.rocm) >= nth;
        if (lost) {
          EXPECT_FALSE(engine->stats().healthy);
          EXPECT_THROW(submit(*engine, greedy("more", 6)), Error);
        }
        for (const auto& sink : sinks) {
          if (!lost) EXPECT_TRUE(sink->finished);
          if (sink->failed) EXPECT_EQ(sink->failed->code, Code::device);
        }
        left += lost ? 1 : 0;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::device) << error.what();
      }
    }
  }
  EXPECT_GT(left, 3) << "lost in the middle of answers";
}

// Counts the ends of its requests.
class Ends final : public EmbeddingSink {
 public:
  void on_embedded(EmbeddingResult) noexcept override { count(embedded_); }
  void on_failed(const Failed& failed) noexcept override {
    code = failed.code;
    count(failed_);
  }
  // Waits for this many requests; returns how many failed.
  int wait(int requests) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60),
                                  [&] { return embedded_ + failed_ == requests; }));
    return failed_;
  }
  std::atomic<Code> code = Code::internal;  // of the last failure

 private:
  void count(int& which) {
    const std::scoped_lock lock(mutex_);
    ++which;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int embedded_ = 0, failed_ = 0;
};

constexpr int kTexts = 8;  // the first may be evaluated alone

std::shared_ptr<Ends> embed(EmbeddingEngine& engine) {
  auto ends = std::make_shared<Ends>();
  for (int i = 0; i < kTexts; ++i) {
    EmbeddingRequest request;
    request.job_id = cat(i);
    request.inputs.emplace_back("some words");
    engine.submit(std::move(request), ends);
  }
  return ends;
}

std::unique_ptr<EmbeddingEngine> embedder_on(Device& device) {
  const auto folder = std::filesystem::path(test::data_folder()) / "models/embedding/data/bert/hf";
  return make_embedding_engine(load_embedding_source(folder, {.device = &device}), {});
}

TEST_P(EngineErrorsTest, TextsThatCannotBeEmbeddedTogetherAreEmbeddedApart) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
  const auto engine = embedder_on(device);
  EXPECT_EQ(embed(*engine)->wait(kTexts), 0);
  for (int nth = 1; nth < 100; nth += 9) {
    library.fail("cuLaunchKernelEx", "hipModuleLaunchKernel", nth, fake::kOutOfMemory);
    EXPECT_LE(embed(*engine)->wait(kTexts), 1) << nth;
  }
  EXPECT_TRUE(engine->stats().healthy);
}

// An embedder that reports that it is ready must work: a kernel that is refused has another in its
// place, or the engine is not made.
TEST_P(EngineErrorsTest, AnEmbedderIsThereWhenItsKernelsAre) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
  const auto loads = [&] { return library.calls("cuModuleLoadData", "hipModuleLoadData"); };
  const auto engine = embedder_on(device);
  const int64_t before = loads();
  EXPECT_EQ(embed(*engine)->wait(kTexts), 0);
  EXPECT_EQ(loads(), before);
  int64_t refused = 0;
  for (int64_t nth = 1; nth <= before; ++nth) {
    gpu::GpuDevice fresh(with_driver(GetParam(), *driver), 0);
    library.fail("cuModuleLoadData", "hipModuleLoadData", static_cast<int>(nth),
                 fake::kInvalidImage);
    try {
      EXPECT_EQ(embed(*embedder_on(fresh))->wait(kTexts), 0) << nth;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported) << nth;
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, before);
}

// Also while they have no requests.
TEST_P(EngineErrorsTest, EnginesSeeThatTheirDeviceIsLost) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
  const auto embedder = embedder_on(device);
  const auto chat = engine_on(device);
  EXPECT_GT(embedder->stats().device_memory_bytes, 0);
  EXPECT_GT(chat->stats().device_memory_bytes, 0);
  library.fail("cuMemGetInfo_v2", "hipMemGetInfo", 1, fake::kLaunchFailed, fake::Then::lost);
  for (const EngineStats& stats : {embedder->stats(), chat->stats()}) {
    EXPECT_FALSE(stats.healthy);
    EXPECT_EQ(stats.device_memory_bytes, 0);
  }
  const auto refused = [](const auto& submit) { return harness::error_of(submit).first; };
  EXPECT_EQ(refused([&] { embed(*embedder); }), Code::device);
  EXPECT_EQ(refused([&] { submit(*chat, greedy("more", 6)); }), Code::device);
}

INSTANTIATE_TEST_SUITE_P(Vendors, EngineErrorsTest, harness::each_vendor(),
                         harness::name_of_vendor);

}  // namespace
}  // namespace rbee::engine
