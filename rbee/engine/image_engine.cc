#include "rbee/engine/image_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "rbee/core/log.h"
#include "rbee/engine/device_watch.h"
#include "rbee/engine/image_loras.h"
#include "rbee/engine/image_pipeline.h"
#include "rbee/engine/image_upscale.h"
#include "rbee/io/image/png.h"

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;

// One request, from the queue to its last event.
struct ImageJob {
  ImageRequest request;
  // Absent while a request with pictures waits: decoded they are far larger than their files.
  std::optional<ImageSettings> settings;
  std::shared_ptr<ImageSink> sink;
  std::atomic<bool> cancelled{false};
  std::atomic<Hurry> hurry{Hurry::none};

  // What it is told once of some pictures, of all from then on.
  Hurry take_hurry() {
    Hurry pictures = Hurry::pictures;
    return hurry.compare_exchange_strong(pictures, Hurry::none) ? Hurry::pictures : hurry.load();
  }
};

bool is_same_lora(const models::LoraSource& a, const models::LoraSource& b) {
  return a.path == b.path && a.weight == b.weight && a.text_weight == b.text_weight;
}

// A picture that is enlarged between two jobs.
struct Errand {
  const models::Upscaler* network = nullptr;
  io::Pixels picture;
  UpscaleHooks hooks;
  std::promise<io::Pixels> result;

  bool cancelled() const { return hooks.going_on && !hooks.going_on(); }
};

// Tells a sink how far its job is.
class Progress {
 public:
  Progress(ImageSink& sink, int32_t total, int32_t images)
      : sink_(sink), total_(total), images_(images) {}

  // Not told again while it stays.
  void step(int32_t done) {
    if (done == last_.step) return;
    const double now = seconds();
    last_ = {.step = done, .total = total_, .seconds = now};
    // Of the steps since the first, which also loads kernels.
    if (done > 1 && now > first_) last_.steps_per_second = (done - 1) / (now - first_);
    if (done == 1) first_ = now;
    last_.images_per_second = last_.steps_per_second * images_ / total_;
    sink_.on_progress(last_);
  }

  // Of a picture that is being enlarged after the last step.
  void tiles(const TileProgress& tiles) {
    ImageProgress event = last_;
    event.total = total_;
    event.seconds = seconds();
    event.tiles = tiles;
    sink_.on_progress(event);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  ImageSink& sink_;
  int32_t total_;
  int32_t images_;
  ImageProgress last_;
  Clock::time_point start_ = Clock::now();
  double first_ = 0;
};

class QueuedImageEngine final : public ImageEngine {
 public:
  QueuedImageEngine(ImageSource source, const ImageEngineOptions& options)
      : source_(std::move(source)), options_(options), pipeline_(source_) {
    check(options.max_waiting >= 0, "image_engine", "max_waiting is negative");
    const bool needs_picture = needs_mask(source_) || reads_control(source_);
    const bool nothing_to_warm = source_.device->host_accessible() || needs_picture;
    if (options.warm_up && !nothing_to_warm) warm_up();
    thread_ = std::thread([this] { loop(); });
  }

  ~QueuedImageEngine() override { stop(); }

  const ImageModelInfo& model() const override { return source_.info; }

  void submit(ImageRequest request, std::shared_ptr<ImageSink> sink) override {
    auto job = std::make_shared<ImageJob>();
    std::optional<ImageSettings> settings = resolve(source_, request);
    const bool small = request.init_image.empty() && request.controls.empty();
    job->request = std::move(request);
    job->sink = std::move(sink);
    const std::scoped_lock lock(mutex_);
    check_takes_work();
    const size_t idle = running_ == nullptr ? 1 : 0;
    if (waiting_.size() >= static_cast<size_t>(options_.max_waiting) + idle) {
      fail(Code::out_of_memory, "engine", "the queue of ", options_.max_waiting, " is full");
    }
    const bool next = idle == 1 && waiting_.empty();
    if (small || next) job->settings = std::move(settings);
    waiting_.push_back(std::move(job));
    wake_.notify_one();
  }

  bool cancel(const std::string& job_id) override {
    const std::scoped_lock lock(mutex_);
    const std::shared_ptr<ImageJob> job = find(job_id);
    if (!job) return false;
    job->cancelled = true;
    wake_.notify_one();
    return true;
  }

  bool hurry(const std::string& job_id, Hurry how) override {
    const std::scoped_lock lock(mutex_);
    const std::shared_ptr<ImageJob> job = find(job_id);
    if (!job) return false;
    job->hurry = how;
    return true;
  }

  io::Pixels upscale(const std::string& network, io::Pixels picture,
                     const UpscaleHooks& hooks) override {
    Errand errand{find_upscaler(source_, network), std::move(picture), hooks, {}};
    check(errand.network != nullptr, "upscaler", "there is no network \"", network, "\"");
    check_enlarged("image", *errand.network, errand.picture.width, errand.picture.height);
    std::future<io::Pixels> result = errand.result.get_future();
    {
      const std::scoped_lock lock(mutex_);
      check_takes_work();
      errands_.push_back(std::move(errand));
      wake_.notify_one();
    }
    return result.get();
  }

  ImageStats stats() const override {
    const MemoryInfo memory = lost_ ? MemoryInfo{} : watch_.memory();
    const std::scoped_lock lock(mutex_);
    ImageStats out = stats_;
    out.healthy = stats_.healthy && !watch_.lost();
    out.device_memory_bytes = memory.total;
    out.device_memory_free_bytes = memory.free;
    out.running = running_ != nullptr ? 1 : 0;
    out.waiting = static_cast<int32_t>(waiting_.size());
    return out;
  }

  std::vector<std::string> loras() const override { return source_.loras.names(); }

  void stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      for (const auto& job : waiting_) job->cancelled = true;
      if (running_ != nullptr) running_->cancelled = true;
      wake_.notify_one();
    }
    const std::scoped_lock lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  // mutex_ is held.
  void check_takes_work() const {
    if (!stats_.healthy || watch_.lost()) fail(Code::device, "engine", "the device has failed");
    if (stopping_) fail(Code::unsupported, "engine", "stopping, takes no new work");
  }

  // Running or waiting; null: neither. mutex_ is held.
  std::shared_ptr<ImageJob> find(const std::string& job_id) const {
    if (running_ != nullptr && running_->request.job_id == job_id) return running_;
    const auto found = std::ranges::find_if(
        waiting_, [&](const auto& job) { return job->request.job_id == job_id; });
    return found == waiting_.end() ? nullptr : *found;
  }

  // Kernels are loaded, libraries choose their algorithms, memory is touched. A model that cannot
  // make a picture of its own size says so at the first request instead; a device that cannot run
  // it never will.
  void warm_up() {
    const auto begin = Clock::now();
    try {
      ImageRequest request;
      request.steps = 1;
      request.seed = 0;
      PipelineTimes times;
      const PipelineHooks hooks{.step = [](int32_t) { return true; },
                                .preview = {},
                                .image = [](io::Pixels, int32_t) { return true; },
                                .going_on = {},
                                .tile = {},
                                .hurry = {},
                                .latents = {}};
      pipeline_.run(request, resolve(source_, request), hooks, times);
    } catch (const Error& error) {
      const bool goes_on = error.code() != Code::device && error.code() != Code::unsupported;
      if (!goes_on && dynamic_cast<const NotFinite*>(&error) == nullptr) throw;
      log(LogLevel::warn, "the warm-up failed", {{"error", error.what()}});
    }
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    log(LogLevel::info, "warmed up", {{"ms", cat(spent.count())}});
  }

  void loop() {
    while (const std::shared_ptr<ImageJob> job = next()) {
      try {
        run(*job);
      } catch (const Error& error) {
        fail_job(*job, error);
      } catch (const std::bad_alloc&) {
        fail_job(*job, Error(Code::out_of_memory, "engine", "the host has no memory left"));
      } catch (const std::exception& error) {
        fail_job(*job, Error(Code::internal, "engine", error.what()));
      }
    }
  }

  // Null: time to end.
  std::shared_ptr<ImageJob> next() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty() || !errands_.empty(); });
      lock.unlock();
      drop_cancelled();
      run_errands();
      lock.lock();
      if (!waiting_.empty()) break;
      if (stopping_ && errands_.empty()) return nullptr;
    }
    running_ = waiting_.front();
    waiting_.pop_front();
    return running_;
  }

  void run_errands() {
    while (true) {
      std::unique_lock lock(mutex_);
      if (errands_.empty()) return;
      Errand errand = std::move(errands_.front());
      errands_.pop_front();
      lock.unlock();
      try {
        const auto between = [&] {
          if (errand.cancelled()) throw unwanted();
          drop_cancelled();
          const std::scoped_lock held(mutex_);
          if (stopping_) fail(Code::cancelled, "engine", "stopping");
        };
        between();
        errand.result.set_value(upscaled(*errand.network, errand.picture, *source_.device,
                                         {.between = between, .tile_done = errand.hooks.tile}));
      } catch (const Error& error) {
        if (error.code() == Code::device) lose_device(error);
        errand.result.set_exception(std::current_exception());
      } catch (...) {
        errand.result.set_exception(std::current_exception());
      }
    }
  }

  void lose_device(const Error& error) {
    lost_ = true;
    {
      const std::scoped_lock lock(mutex_);
      stats_.healthy = false;
    }
    drop_waiting(error);
  }

  static Error unwanted() {
    return {Code::cancelled, "upscaler", "the picture is not wanted any more"};
  }

  // Those that wait need not wait for the running one to be told.
  void drop_cancelled() {
    std::vector<std::shared_ptr<ImageJob>> dropped;
    {
      const std::scoped_lock lock(mutex_);
      std::erase_if(waiting_, [&](const auto& job) {
        if (job->cancelled) dropped.push_back(job);
        return job->cancelled.load();
      });
      stats_.requests_cancelled += dropped.size();
      std::erase_if(errands_, [&](Errand& errand) {
        if (!errand.cancelled()) return false;
        errand.result.set_exception(std::make_exception_ptr(unwanted()));
        return true;
      });
    }
    for (const auto& job : dropped) job->sink->on_finished({.cancelled = true});
  }

  void run(ImageJob& job);

  ImageStarted started(const ImageJob& job, int32_t total) const {
    const ImageSettings& settings = *job.settings;
    const models::Upscaler* network = settings.final_network;
    const auto scale = network != nullptr ? static_cast<int32_t>(network->scale()) : 1;
    return {.model = source_.info.id,
            .seed = settings.seed,
            .width = settings.final_width * scale,
            .height = settings.final_height * scale,
            .steps = total,
            .count = job.request.count,
            .sampler = std::string(diffusion::name(settings.sampler)),
            .schedule = std::string(diffusion::name(settings.schedule)),
            .guidance_scale = settings.guidance};
  }

  void send(const ImageJob& job, const io::Pixels& image, int32_t index) const {
    ImageReady ready;
    ready.parameters = parameters_text(job.request, *job.settings, source_.info, index);
    if (!io::parameters_fit(job.request.encoding.format, ready.parameters)) {
      log(LogLevel::warn, "the settings are too long for a file of this kind, which has none",
          {{"job_id", job.request.job_id}, {"bytes", cat(ready.parameters.size())}});
    }
    ready.file = io::encode_image(image, job.request.encoding, ready.parameters);
    ready.format = job.request.encoding.format;
    ready.seed = seed_of(*job.settings, index);
    ready.index = index;
    ready.width = image.width;
    ready.height = image.height;
    job.sink->on_image(ready);
  }

  // LoRAs are part of the weights: with another set of them parts of the model are read again.
  void set_loras(const ImageRequest& request) {
    std::vector<models::LoraSource> wanted;
    for (const LoraUse& lora : prompt_loras(request).loras) {
      wanted.push_back({source_.loras.find(lora.path), lora.strength, lora.text_strength});
    }
    if (!unsure_ && std::ranges::equal(wanted, loras_, is_same_lora)) return;
    log(LogLevel::info, "the model gets other LoRAs", {{"loras", cat(wanted.size())}});
    // After a failure the model has the old ones or none; the next request asks again.
    unsure_ = true;
    pipeline_.forget_prompts();
    try {
      source_.change_loras(source_.model, wanted);
    } catch (const Error& error) {
      log(LogLevel::warn, "LoRAs could not be taken", {{"reason", error.what()}});
      // Clients read the file's name without the folders above.
      fail(error.code(), "loras", source_.loras.without_folder(error.what()));
    }
    unsure_ = false;
    loras_ = std::move(wanted);
  }

  void count(const PipelineTimes& times, int32_t images) {
    const std::scoped_lock lock(mutex_);
    stats_.images += static_cast<uint64_t>(images);
    stats_.steps += static_cast<uint64_t>(times.evaluations);
    stats_.text_seconds += times.text_ms / 1000;
    stats_.sample_seconds += times.sample_ms / 1000;
    stats_.decode_seconds += times.decode_ms / 1000;
  }

  // Before the last event: who has seen it finds the request counted and gone.
  void finish(ImageJob& job, const ImageFinished& finished) {
    leave(finished.cancelled ? &ImageStats::requests_cancelled : &ImageStats::requests_finished);
    job.sink->on_finished(finished);
  }

  void fail_job(ImageJob& job, const Error& error) {
    log(LogLevel::warn, "a request failed",
        {{"job_id", job.request.job_id}, {"error", error.what()}});
    const bool lost = error.code() == Code::device;
    if (lost) lost_ = true;
    leave(&ImageStats::requests_failed);
    job.sink->on_failed({error.code(), error.what()});
    if (lost) drop_waiting(error);
  }

  void leave(uint64_t ImageStats::* counter) {
    const std::scoped_lock lock(mutex_);
    running_ = nullptr;
    ++(stats_.*counter);
    if (lost_) stats_.healthy = false;
  }

  void drop_waiting(const Error& error) {
    log(LogLevel::error, "the device is lost", {{"error", error.what()}});
    std::deque<std::shared_ptr<ImageJob>> dropped;
    {
      const std::scoped_lock lock(mutex_);
      dropped.swap(waiting_);
      stats_.requests_failed += dropped.size();
    }
    for (const auto& job : dropped) job->sink->on_failed({error.code(), error.what()});
  }

  ImageSource source_;
  ImageEngineOptions options_;
  ImagePipeline pipeline_;
  std::vector<models::LoraSource> loras_;
  bool unsure_ = false;  // whether the model has loras_
  DeviceWatch watch_{*source_.device};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<ImageJob>> waiting_;
  std::deque<Errand> errands_;
  std::shared_ptr<ImageJob> running_;
  ImageStats stats_;
  bool stopping_ = false;
  std::atomic<bool> lost_{false};

  std::mutex join_mutex_;
  std::thread thread_;
};

void QueuedImageEngine::run(ImageJob& job) {
  if (!job.settings) job.settings = resolve(source_, job.request);
  set_loras(job.request);
  const int32_t total = pipeline_.total_steps(job.request, *job.settings);
  job.sink->on_started(started(job, total));
  Progress progress(*job.sink, total, job.request.count);
  ImageFinished finished;
  const auto going_on = [&] {
    drop_cancelled();
    return !job.cancelled;
  };
  PipelineHooks hooks;
  hooks.step = [&](int32_t done) {
    finished.steps = done;
    progress.step(done);
    return going_on();
  };
  hooks.preview = [&](const io::Pixels& preview, int32_t done, int32_t index) {
    job.sink->on_preview({io::encode_png(preview), done, index});
    return going_on();
  };
  hooks.going_on = going_on;
  hooks.tile = [&](const TileProgress& tiles) { progress.tiles(tiles); };
  hooks.hurry = [&] { return job.take_hurry(); };
  PipelineTimes times;
  hooks.image = [&](io::Pixels image, int32_t index) {
    send(job, image, index);
    finished.images = index + 1;
    return going_on();
  };
  const bool whole = pipeline_.run(job.request, *job.settings, hooks, times);
  finished.cancelled = !whole && finished.images < job.request.count;
  finished.text_ms = times.text_ms;
  finished.sample_ms = times.sample_ms;
  finished.decode_ms = times.decode_ms;
  count(times, finished.images);
  finish(job, finished);
}

}  // namespace

std::unique_ptr<ImageEngine> make_image_engine(ImageSource source,
                                               const ImageEngineOptions& options) {
  return std::make_unique<QueuedImageEngine>(std::move(source), options);
}

}  // namespace rbee::engine
