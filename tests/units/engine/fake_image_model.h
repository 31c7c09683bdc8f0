#pragma once
// An image model with parts of a few lines each, and a sink that keeps an engine's events.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "rbee/engine/image/engine.h"

namespace rbee::engine {

// A token's state is its id, twice.
class FakeTextEncoder : public models::TextEncoder {
 public:
  models::TextEncoding operator()(const models::TextInput& input) const override;
  int64_t width() const override { return 2; }
  int64_t pooled_width() const override { return 0; }
  int64_t max_tokens() const override { return 77; }
  int64_t vocab_size() const override { return 1024; }
  int64_t layers() const override { return 2; }
};

// The same, but first reports that it is called.
class CallbackTextEncoder final : public FakeTextEncoder {
 public:
  using Called = std::function<void(const models::TextInput&)>;
  explicit CallbackTextEncoder(Called called) : called_(std::move(called)) {}
  models::TextEncoding operator()(const models::TextInput& input) const override {
    called_(input);
    return FakeTextEncoder::operator()(input);
  }

 private:
  Called called_;
};

// Predicts what `output` returns; `output` may also wait, throw or return non-finite values.
class FakeDenoiser final : public models::Denoiser {
 public:
  using Output = std::function<Tensor(const Tensor& x)>;
  explicit FakeDenoiser(Output output) : output_(std::move(output)) {}

  const models::DenoiserInfo& info() const override { return info_; }
  std::unique_ptr<models::Conditioning> prepare(const models::TextStates& text) const override;
  // The number of conditionings alive.
  long alive() const { return alive_.use_count() - 1; }
  Tensor operator()(const Tensor& x, const Tensor& timesteps,
                    const models::Conditioning& conditioning,
                    const models::DenoiserOptions& options) const override;

 private:
  Output output_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  models::DenoiserInfo info_{.context_width = 2, .sample_size = 8, .circular = true};
};

// Three colours of 8 x 8 pixels from three of four channels; uses no random numbers.
class FakeVae final : public models::Vae {
 public:
  const models::VaeInfo& info() const override { return info_; }
  models::LatentDistribution encode(const Tensor& image, Circular circular) const override;
  Tensor decode(const Tensor& latent, const models::Between& between,
                Circular circular) const override;

 private:
  models::VaeInfo info_{};
};

// Native size 64 x 64 pixels, 20 steps, on the CPU.
ImageSource fake_source(FakeDenoiser::Output output);
// An `output` that treats half of x as noise.
Tensor half_noise(const Tensor& x);

class ImageRecorder : public ImageSink {
 public:
  void on_started(const ImageStarted& event) noexcept override;
  void on_progress(const ImageProgress& event) noexcept override;
  void on_preview(const ImagePreview& event) noexcept override;
  void on_image(ImageReady&& event) noexcept override;
  void on_finished(const ImageFinished& event) noexcept override;
  void on_failed(const ImageFailed& event) noexcept override;

  // Waits for the last event; false after 60 seconds.
  bool wait();

  // Read these after wait().
  std::vector<std::string> order;  // names of events; progress once for a row of them
  ImageStarted started;
  std::vector<ImageProgress> progress;
  std::vector<ImagePreview> previews;
  std::vector<ImageReady> images;
  ImageFinished finished;
  std::vector<ImageFailed> failures;

 private:
  void note(const char* event);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace rbee::engine
