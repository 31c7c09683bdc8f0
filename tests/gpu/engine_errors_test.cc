// The chat engine over the fake drivers, with each call of the driver failing once, at one place
// after another: requests that share steps end as they should, and nothing is left behind.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/gpu/runtime_fixture.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

using harness::FakeLibrary;
using harness::Vendor;

// A call of the driver, by either vendor's name.
struct Call {
  const char* cuda;
  const char* rocm;
};

class EngineErrorsTest : public ::testing::TestWithParam<Vendor> {
 protected:
  // Fresh memory is zeros, so that kernels that do nothing leave the logits of a text.
  void SetUp() override {
    setenv("RBEE_FAKE_FILL", "0", 1);
    harness::open_fake_products(GetParam());
  }
  void TearDown() override { unsetenv("RBEE_FAKE_FILL"); }

  // Requests of three lengths at the same time.
  static std::vector<std::shared_ptr<Recorder>> answers(Engine& engine) {
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (const char* prompt : {"a", "some words", "more words than the other two have"}) {
      try {
        sinks.push_back(submit(engine, greedy(prompt, 6)));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::device);  // of the one before
      }
    }
    for (const auto& sink : sinks) sink->wait();
    return sinks;
  }
  static std::unique_ptr<Engine> engine_on(Device& device) {
    return make_llm_engine(tiny_model(64, device), {.max_running = 3});
  }
  // Everything that is kept goes back to the driver.
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
      std::unique_ptr<Engine> engine;
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

// Of one place for each call: a device is lost at its first use, while a step is recorded, and in
// the middle of answers.
TEST_P(EngineErrorsTest, ALostDeviceEndsEverythingAndLeavesNothing) {
  int64_t left = 0;
  for (const Call& call :
       {Call{"cuMemcpyHtoDAsync_v2", "hipMemcpyAsync"},
        Call{"cuMemcpyDtoHAsync_v2", "hipMemcpyAsync"},
        Call{"cuStreamSynchronize", "hipStreamSynchronize"},
        Call{"cuStreamWaitEvent", "hipStreamWaitEvent"}, Call{"cuEventRecord", "hipEventRecord"},
        Call{"cuStreamEndCapture", "hipStreamEndCapture"}, Call{"cuGraphLaunch", "hipGraphLaunch"},
        Call{"cuLaunchKernelEx", "hipModuleLaunchKernel"}}) {
    for (const int nth : {1, 2, 5, 20, 200}) {
      SCOPED_TRACE(cat(call.cuda, " number ", nth));
      const FakeLibrary library(GetParam());
      const auto driver = library.open();
      gpu::GpuDevice device(with_driver(GetParam(), *driver), 0);
      std::unique_ptr<Engine> engine;
      library.fail(call.cuda, call.rocm, nth, fake::kLaunchFailed, fake::Then::lost);
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

INSTANTIATE_TEST_SUITE_P(Vendors, EngineErrorsTest, harness::each_vendor(),
                         harness::name_of_vendor);

}  // namespace
}  // namespace rbee::engine
