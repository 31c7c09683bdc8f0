#pragma once
// An image engine that follows a script instead of a model: one thread, requests in order.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "rbee/engine/api/image.h"

namespace rbee::testing {

struct ImageScript {
  int32_t steps = 4;         // if the request does not say
  bool hold = false;         // wait for release() or a cancel after the first step
  bool hold_tile = false;    // wait for a cancel after the first tile of an upscale
  bool hold_submit = false;  // requests with a picture wait for let_submit()
  std::string architecture = "sd1";
  std::string capture_refusal = {};  // of the model
  std::string file = "not really a PNG";
  std::string parameters = "\nSteps: 4";         // after the prompt
  std::optional<engine::ImageFailed> failure{};  // instead of pictures
};

class FakeImageEngine final : public engine::ImageEngine {
 public:
  explicit FakeImageEngine(ImageScript script = {});
  ~FakeImageEngine() override { stop(); }

  const engine::ImageModelInfo& model() const override { return model_; }
  void submit(engine::ImageRequest request, std::shared_ptr<engine::ImageSink> sink) override;
  bool cancel(const std::string& job_id) override;
  bool hurry(const std::string& job_id, engine::Hurry how) override;
  // Nearest neighbour, at twice the size, in four tiles.
  io::Pixels upscale(const std::string& network, io::Pixels picture,
                     const engine::UpscaleHooks& hooks) override;
  engine::ImageStats stats() const override;
  std::vector<engine::LoraName> loras() const override { return {{"styles/ink", "India ink"}}; }
  void stop() override;

  void release();
  // Waits until this many requests are within submit(); false after a minute.
  bool wait_submitting(int32_t count) const;
  void let_submit();
  // submit() throws this from now on.
  void refuse_with(Code code) { refusal_ = code; }
  // Waits until a request is held; false after a minute.
  bool wait_held() const;
  engine::ImageRequest last_request() const;

 private:
  struct Item {
    engine::ImageRequest request;
    std::shared_ptr<engine::ImageSink> sink;
  };
  void loop();
  // False if the request was cancelled.
  bool play_steps(const Item& item, int32_t steps);
  void play(const Item& item);
  // Makes one picture at a time.
  int32_t images_of(const engine::ImageRequest& request) const;

  const ImageScript script_;
  engine::ImageModelInfo model_;
  std::atomic<std::optional<Code>> refusal_{std::nullopt};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Item> queue_;
  std::set<std::string> alive_;  // waiting or running
  std::set<std::string> cancel_ids_;
  std::map<std::string, engine::Hurry> hurried_;
  engine::ImageRequest last_;
  bool held_ = false;
  bool released_ = false;
  int32_t submitting_ = 0;
  bool may_submit_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rbee::testing
