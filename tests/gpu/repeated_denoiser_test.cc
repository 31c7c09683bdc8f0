// A denoiser called step after step is captured and replayed on devices that can capture.
#include <gtest/gtest.h>

#include "backends/gpu/backend.h"
#include "backends/gpu/gpu_device.h"
#include "rbee/engine/image/guide.h"
#include "rbee/ops/elementwise.h"
#include "tests/gpu/fake_library.h"

namespace rbee::harness {
namespace {

// A number that the denoiser adds.
struct Prompt final : models::Conditioning {
  std::unique_ptr<models::Conditioning> clone() const override {
    return std::make_unique<Prompt>(*this);
  }
  std::vector<Tensor*> tensors() override { return {&added, &absent}; }

  Tensor added, absent;
};

class DoublingDenoiser final : public models::Denoiser {
 public:
  const models::DenoiserInfo& info() const override { return info_; }
  std::unique_ptr<models::Conditioning> prepare(const models::TextStates&) const override {
    return std::make_unique<Prompt>();
  }
  Tensor operator()(const Tensor& x, const Tensor&, const models::Conditioning& prompt,
                    const models::DenoiserOptions&) const override {
    ++calls;
    read.push_back(dynamic_cast<const Prompt&>(prompt).added.buffer().get());
    return affine(x, 2, 0);
  }

  mutable int calls = 0;
  mutable std::vector<const Buffer*> read;  // the place that each call read

 private:
  models::DenoiserInfo info_;
};

class RepeatedDenoiserTest : public ::testing::TestWithParam<Vendor> {
 protected:
  RepeatedDenoiserTest() : library_(GetParam()), driver_(library_.open()) {
    device_ = std::make_unique<gpu::GpuDevice>(with_driver(GetParam(), *driver_), 0);
    EXPECT_TRUE(device_->supports_capture());
    tested_ = graph_launches();
  }
  // Calls it like a sampler of this many steps, with one prompt after the other, each by `longer`
  // longer than the one before. Returns how many calls reached the denoiser.
  int run(int steps, size_t prompts = 1, int64_t longer = 0) {
    const DoublingDenoiser denoiser;
    std::vector<Prompt> told(prompts);
    int64_t length = 3;
    for (Prompt& prompt : told) {
      prompt.added = zeros({2, length}, DType::f32, *device_);
      length += longer;
    }
    engine::RepeatedDenoiser repeated(denoiser, prompts > 1, {});
    for (int step = 0; step < steps; ++step) {
      const Tensor x = zeros({2, 4, 4, 4}, DType::f32, *device_);
      const Tensor times = zeros({2}, DType::f32, *device_);
      const auto index = static_cast<size_t>(step) % prompts;
      repeated(x, times, {told[index], index}, steps - step);
    }
    device_->synchronize(device_->default_stream());
    reads_own_ = denoiser.read.back() != told[1 % prompts].added.buffer().get();
    return denoiser.calls;
  }
  int64_t replays() const { return graph_launches() - tested_; }

  FakeLibrary library_;
  std::unique_ptr<gpu::Driver> driver_;
  std::unique_ptr<gpu::GpuDevice> device_;
  bool reads_own_ = false;  // whether the last call read another place than its prompt's

 private:
  int64_t graph_launches() const { return library_.calls("cuGraphLaunch", "hipGraphLaunch"); }

  int64_t tested_ = 0;  // replays of the device's self-test
};

TEST_P(RepeatedDenoiserTest, IsCapturedAtTheSecondCall) {
  EXPECT_EQ(run(20), 2) << "once as it is, once for the capture";
  EXPECT_EQ(replays(), 19);
}

TEST_P(RepeatedDenoiserTest, OneCaptureServesPromptsThatChange) {
  EXPECT_EQ(run(20, 3), 2);
  EXPECT_EQ(replays(), 19);
  EXPECT_TRUE(reads_own_) << "which each prompt is copied to";
  run(20);
  EXPECT_FALSE(reads_own_) << "one prompt is not copied";
}

TEST_P(RepeatedDenoiserTest, PromptsOfAnotherLengthAreNotReplayed) {
  EXPECT_EQ(run(20, 2, 1), 11) << "the first, the capture, and nine of the first one's length";
  EXPECT_EQ(replays(), 10);
}

TEST_P(RepeatedDenoiserTest, IsCalledWhereFewStepsAreLeft) {
  EXPECT_EQ(run(4), 4);
  EXPECT_EQ(replays(), 0);
}

INSTANTIATE_TEST_SUITE_P(Drivers, RepeatedDenoiserTest, ::testing::ValuesIn(built_vendors()),
                         [](const auto& p) { return p.param == Vendor::cuda ? "cuda" : "rocm"; });

}  // namespace
}  // namespace rbee::harness
