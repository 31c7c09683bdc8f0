#include "tests/server/fake_image_engine.h"

#include "rbee/io/image/resize.h"

namespace rbee::testing {

constexpr std::chrono::seconds kPatience{60};

FakeImageEngine::FakeImageEngine(ImageScript script) : script_(std::move(script)) {
  model_ = {.id = "fake-pictures",
            .architecture = script_.architecture,
            .device = "cpu:0",
            .dtype = "f32",
            .default_width = 512,
            .default_height = 512,
            .max_side = 2048,
            .default_steps = 20,
            .default_guidance = 7.5f,
            .default_sampler = "Euler",
            .default_schedule = "normal",
            .inpainting = false,
            .controls = {"canny"},
            .upscalers = {{"sharp", 2}},
            .embeddings = {{"owl", 2}},
            .skipped_embeddings = {"other"},
            .parameters = 860,
            .weight_bytes = 1720,
            .capture_refusal = script_.capture_refusal};
  thread_ = std::thread([this] { loop(); });
}

void FakeImageEngine::submit(engine::ImageRequest request,
                             std::shared_ptr<engine::ImageSink> sink) {
  if (script_.hold_submit && !request.init_image.empty()) {
    std::unique_lock lock(mutex_);
    ++submitting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_submit_ || stopping_; });
  }
  validate(request);
  if (const std::optional<Code> code = refusal_.load()) fail(*code, "engine", "as scripted");
  const std::lock_guard lock(mutex_);
  if (stopping_) fail(Code::unsupported, "engine", "stopping");
  last_ = request;
  alive_.insert(request.job_id);
  queue_.push_back({std::move(request), std::move(sink)});
  changed_.notify_all();
}

io::Pixels FakeImageEngine::upscale(const std::string& network, io::Pixels picture,
                                    const engine::UpscaleHooks& hooks) {
  constexpr int32_t kTiles = 4;
  if (network != "sharp") fail(Code::invalid_argument, "upscaler", network);
  for (int32_t tile = 1; tile <= kTiles; ++tile) {
    hooks.tile({tile, kTiles});
    std::unique_lock lock(mutex_);
    held_ = held_ || script_.hold_tile;
    changed_.notify_all();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (script_.hold_tile && hooks.going_on() && std::chrono::steady_clock::now() < deadline) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    if (!hooks.going_on()) fail(Code::cancelled, "upscaler", "not wanted");
  }
  return io::resized(picture, 2 * picture.width, 2 * picture.height, io::Resampler::nearest);
}

bool FakeImageEngine::cancel(const std::string& job_id) {
  const std::lock_guard lock(mutex_);
  if (!alive_.contains(job_id)) return false;
  cancel_ids_.insert(job_id);
  changed_.notify_all();
  return true;
}

bool FakeImageEngine::hurry(const std::string& job_id, engine::Hurry how) {
  const std::lock_guard lock(mutex_);
  if (!alive_.contains(job_id)) return false;
  hurried_[job_id] = how;
  changed_.notify_all();
  return true;
}

engine::ImageStats FakeImageEngine::stats() const {
  const std::lock_guard lock(mutex_);
  engine::ImageStats stats;
  stats.running = alive_.size() > queue_.size() ? 1 : 0;
  stats.waiting = static_cast<int32_t>(queue_.size());
  stats.images = 3;
  stats.device_memory_bytes = 1000;
  stats.device_memory_free_bytes = 400;
  return stats;
}

void FakeImageEngine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void FakeImageEngine::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

bool FakeImageEngine::wait_submitting(int32_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return submitting_ >= count; });
}

void FakeImageEngine::let_submit() {
  const std::lock_guard lock(mutex_);
  may_submit_ = true;
  changed_.notify_all();
}

bool FakeImageEngine::wait_held() const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return held_; });
}

engine::ImageRequest FakeImageEngine::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void FakeImageEngine::loop() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    play(item);
    const std::lock_guard lock(mutex_);
    alive_.erase(item.request.job_id);
  }
}

bool FakeImageEngine::play_steps(const Item& item, int32_t steps) {
  for (int32_t step = 1; step <= steps; ++step) {
    item.sink->on_progress({.step = step,
                            .total = steps,
                            .seconds = 0.5 * step,
                            .steps_per_second = 2,
                            .images_per_second = 2.0 / steps});
    const int32_t interval = item.request.preview_interval;
    const bool counted = step < steps && step <= item.request.preview_count;
    if (counted || (interval > 0 && step % interval == 0)) {
      item.sink->on_preview({.png = "small", .step = step, .index = 0});
    }
    std::unique_lock lock(mutex_);
    const std::string& id = item.request.job_id;
    if (script_.hold && step == 1) {
      held_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] {
        return released_ || stopping_ || cancel_ids_.contains(id) || hurried_.contains(id);
      });
    }
    if (stopping_ || cancel_ids_.contains(id)) return false;
  }
  return true;
}

int32_t FakeImageEngine::images_of(const engine::ImageRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto hurried = hurried_.find(request.job_id);
  const bool all = hurried != hurried_.end() && hurried->second == engine::Hurry::request;
  return all ? 1 : request.count;
}

void FakeImageEngine::play(const Item& item) {
  const engine::ImageRequest& request = item.request;
  const uint64_t seed = request.seed.value_or(42);
  const int32_t steps = request.steps > 0 ? request.steps : script_.steps;
  const int32_t width = request.width > 0 ? request.width : model_.default_width;
  item.sink->on_started({.model = model_.id,
                         .seed = seed,
                         .width = width,
                         .height = width,
                         .steps = steps,
                         .count = request.count,
                         .sampler = "Euler",
                         .schedule = "normal",
                         .guidance_scale = request.guidance_scale.value_or(7.5f)});
  if (script_.failure) return item.sink->on_failed(*script_.failure);
  if (!play_steps(item, steps)) return item.sink->on_finished({.cancelled = true});
  const int32_t count = images_of(request);
  for (int32_t i = 0; i < count; ++i) {
    item.sink->on_image({.file = script_.file,
                         .format = request.encoding.format,
                         .parameters = request.prompt + script_.parameters,
                         .seed = seed + static_cast<uint64_t>(i),
                         .index = i,
                         .width = width,
                         .height = width});
  }
  item.sink->on_finished({.cancelled = false,
                          .images = count,
                          .steps = steps,
                          .text_ms = 1,
                          .sample_ms = 2,
                          .decode_ms = 3});
}

}  // namespace rbee::testing
