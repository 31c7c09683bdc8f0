#include "rbee/engine/image/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "rbee/core/background.h"
#include "rbee/core/cancel.h"
#include "rbee/core/log.h"
#include "rbee/engine/common/device_watch.h"
#include "rbee/engine/image/events.h"
#include "rbee/engine/image/job.h"
#include "rbee/engine/image/model_loras.h"
#include "rbee/engine/image/pipeline.h"
#include "rbee/engine/image/progress.h"
#include "rbee/engine/image/upscale.h"
#include "rbee/engine/image/warm_up.h"
#include "rbee/io/image/large_pictures.h"
#include "rbee/io/image/png.h"

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;

// A smaller picture is coded into a file in less time than a turn takes.
constexpr int64_t kLargePixels = int64_t{512} * 512;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class QueuedImageEngine final : public ImageEngine {
 public:
  QueuedImageEngine(ImageSource source, const ImageEngineOptions& options)
      : source_(std::move(source)), options_(options), pipeline_(source_) {
    check(options.max_waiting >= 0, "image_engine", "max_waiting is negative");
    const bool needs_picture = needs_mask(source_) || reads_control(source_);
    const bool nothing_to_warm = source_.device->host_accessible() || needs_picture;
    if (options.warm_up && !nothing_to_warm) warm_up(source_, pipeline_);
    thread_ = std::thread([this] { begin_turns(); });
  }

  ~QueuedImageEngine() override { stop(); }

  const ImageModelInfo& model() const override { return source_.info; }

  void submit(ImageRequest request, std::shared_ptr<ImageSink> sink) override {
    auto job = std::make_shared<DiffusionJob>();
    job->picture_pixels = pixels_sent(request);
    std::optional<ImageSettings> settings = read_pictures(request, job->picture_pixels);
    job->client = request.client;
    job->adapters = adapters_of(request);
    job->request = std::move(request);
    job->sink = std::move(sink);
    job->work = [this, it = job.get()] { work(*it); };
    const std::scoped_lock lock(mutex_);
    check_takes_work();
    if (!has_place_for(job->client)) {
      fail(Code::out_of_memory, "engine", "the queue of ", options_.max_waiting, " is full");
    }
    if (job->picture_pixels == 0 || holder_ == nullptr) {
      job->settings = std::move(settings);
      job->holds_pictures = job->picture_pixels > 0;
    }
    jobs_.push_back(job);
    turns_.add(std::move(job));
    if (holder_ == nullptr) hand_over();
  }

  bool cancel(const std::string& job_id) override {
    const std::scoped_lock lock(mutex_);
    const std::shared_ptr<DiffusionJob> job = find(job_id);
    if (!job) return false;
    job->cancelled = job->leaving = true;
    return true;
  }

  bool hurry(const std::string& job_id, Hurry how) override {
    const std::scoped_lock lock(mutex_);
    const std::shared_ptr<DiffusionJob> job = find(job_id);
    if (!job) return false;
    job->hurry = how;
    return true;
  }

  io::Pixels upscale(const std::string& network, io::Pixels picture,
                     const UpscaleHooks& hooks) override;

  ImageStats stats() const override {
    const MemoryInfo memory = lost_ ? MemoryInfo{} : watch_.memory();
    const std::scoped_lock lock(mutex_);
    ImageStats out = stats_;
    out.healthy = stats_.healthy && !watch_.lost();
    out.device_memory_bytes = memory.total;
    out.device_memory_free_bytes = memory.free;
    out.waiting = static_cast<int32_t>(waiting());
    out.running = static_cast<int32_t>(jobs_.size()) - out.waiting;
    return out;
  }

  std::vector<LoraName> loras() const override { return source_.loras.list(); }

  void stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      for (const auto& job : jobs_) job->cancelled = job->leaving = true;
      wake_.notify_all();
    }
    drop_cancelled();
    const std::scoped_lock joining(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  // Requires mutex_.
  void check_takes_work() const {
    if (!stats_.healthy || watch_.lost()) fail(Code::device, "engine", "the device has failed");
    if (stopping_) fail(Code::unsupported, "engine", "stopping, takes no new work");
  }

  // The requests that have not begun. Requires mutex_.
  size_t waiting() const {
    return static_cast<size_t>(
        std::ranges::count_if(jobs_, [](const auto& job) { return !job->begun; }));
  }

  // A client that fills the queue does not keep other clients out. Requires mutex_.
  bool has_place_for(const std::string& client) const {
    const auto most = static_cast<size_t>(options_.max_waiting);
    const size_t all = waiting();
    if (holder_ == nullptr || all < most) return true;
    if (all >= 2 * most) return false;
    std::set<std::string_view> clients{client};
    size_t own = 0;
    for (const auto& job : jobs_) {
      if (job->begun) continue;
      clients.insert(job->client);
      if (job->client == client) ++own;
    }
    return own < most / clients.size();
  }

  // Begun or waiting; null: neither. Requires mutex_.
  std::shared_ptr<DiffusionJob> find(const std::string& job_id) const {
    const auto found =
        std::ranges::find_if(jobs_, [&](const auto& job) { return job->request.job_id == job_id; });
    return found == jobs_.end() ? nullptr : *found;
  }

  // Gives the turn to the next one. Requires mutex_.
  void hand_over() {
    holder_ = turns_.next();
    turn_began_ = Clock::now();
    if (holder_ != nullptr) {
      holder_->resting = false;
      if (!std::exchange(holder_->begun, true)) starting_.push_back(holder_);
    }
    wake_.notify_all();
  }

  // If it is time, gives others their turns, until it is this one's again. Returns how long it
  // waited, in ms.
  double pause(ImageTurn& turn) {
    std::unique_lock lock(mutex_);
    const double spent = seconds_since(turn_began_);
    const bool must = turn.resting || turn.wanted_pixels > 0;
    if (!must && spent < std::chrono::duration<double>(options_.slice).count()) return 0;
    turns_.spend(turn, spent);
    const auto begin = Clock::now();
    hand_over();
    wake_.wait(lock, [&] { return holder_.get() == &turn; });
    return seconds_since(begin) * 1000;
  }

  // Pictures of this many pixels in all. Large ones wait for others' that are being decoded, pasted
  // or coded. Throws cancelled if the client leaves meanwhile.
  ImageSettings read_pictures(const ImageRequest& request, int64_t pixels) {
    const auto place = large_pictures_.enter(pixels);
    return resolve(source_, request);
  }

  // Makes settings that are absent.
  void read_settings(DiffusionJob& job);

  // Decoding, resizing and coding the largest pictures takes seconds and needs no device, so others
  // have their turns meanwhile. Returns how long it then waited for its own, in ms.
  double beside(DiffusionJob& job, const std::function<void()>& work);

  // Waits until it may hold this many pixels, besides those of others, in place of those that the
  // turn held. Returns how long it waited, in ms.
  double hold_pixels(ImageTurn& turn, int64_t pixels) {
    {
      const std::scoped_lock lock(mutex_);
      turn.wanted_pixels = pixels;
      turn.decoded_pixels = 0;
    }
    if (pixels == 0) return 0;
    const double waited = pause(turn);
    const std::scoped_lock lock(mutex_);
    turn.decoded_pixels = std::exchange(turn.wanted_pixels, 0);
    return waited;
  }

  // The last picture needs no device any more: others may begin, and the turn is short.
  void leave_device(DiffusionJob& job) {
    const std::scoped_lock lock(mutex_);
    job.resting = job.leaving = true;
  }

  // The turn is over for good. Requires mutex_.
  void end_turn(ImageTurn& turn) {
    turns_.spend(turn, seconds_since(turn_began_));
    turns_.remove(turn);
    turn.over = true;
    hand_over();
  }

  // mutex_ is held.
  bool is_over() const { return stopping_ && holder_ == nullptr && beside_ == 0; }

  // Gives each turn a thread with this thread's priority, not with the caller's, which may
  // leave processors to others.
  void begin_turns() {
    std::vector<std::future<void>> threads;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return !starting_.empty() || is_over(); });
      if (starting_.empty()) break;
      ImageTurnPtr turn = std::move(starting_.back());
      starting_.pop_back();
      std::erase_if(threads, [](const std::future<void>& thread) {
        return thread.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      });
      threads.push_back(std::async(std::launch::async, [turn = std::move(turn)] { turn->work(); }));
    }
  }

  void work(DiffusionJob& job) {
    try {
      const CancelScope scope(job.cancelled);
      run(job);
    } catch (const Error& error) {
      fail_job(job, error);
    } catch (const std::bad_alloc&) {
      fail_job(job, Error(Code::out_of_memory, "engine", "the host has no memory left"));
    } catch (const std::exception& error) {
      fail_job(job, Error(Code::internal, "engine", error.what()));
    }
  }

  // Throws if the picture is not wanted any more.
  void look_at(const UpscaleHooks& hooks) {
    if (hooks.going_on && !hooks.going_on()) {
      fail(Code::cancelled, "upscaler", "the picture is not wanted any more");
    }
    const std::scoped_lock lock(mutex_);
    if (stopping_) fail(Code::cancelled, "engine", "stopping");
  }

  // Waits until the turn is over; a turn that has not begun ends if its picture is unwanted.
  void await(const ImageTurnPtr& turn, const UpscaleHooks& hooks);

  void lose_device(const Error& error) {
    lost_ = true;
    {
      const std::scoped_lock lock(mutex_);
      stats_.healthy = false;
    }
    drop_waiting(error);
  }

  // The waiting requests for which is_taken() is true.
  std::vector<std::shared_ptr<DiffusionJob>> take_waiting(const auto& is_taken,
                                                          uint64_t ImageStats::* counter) {
    std::vector<std::shared_ptr<DiffusionJob>> taken;
    const std::scoped_lock lock(mutex_);
    std::erase_if(jobs_, [&](const auto& job) {
      if (job->begun || !is_taken(*job)) return false;
      turns_.remove(*job);
      taken.push_back(job);
      return true;
    });
    stats_.*counter += taken.size();
    return taken;
  }

  // Waiting requests end at once, without waiting for the running one.
  void drop_cancelled() {
    const auto is_cancelled = [](const DiffusionJob& job) { return job.cancelled.load(); };
    for (const auto& job : take_waiting(is_cancelled, &ImageStats::requests_cancelled)) {
      job->sink->on_finished({.cancelled = true});
    }
  }

  void run(DiffusionJob& job);
  void draw(DiffusionJob& job, ImageFinished& finished);
  PipelineHooks hooks_of(DiffusionJob& job, PipelineTimes& times);

  void count(const PipelineTimes& times, int32_t images) {
    const std::scoped_lock lock(mutex_);
    stats_.images += static_cast<uint64_t>(images);
    stats_.steps += static_cast<uint64_t>(times.evaluations);
    stats_.text_seconds += times.text_ms / 1000;
    stats_.sample_seconds += times.sample_ms / 1000;
    stats_.decode_seconds += times.decode_ms / 1000;
  }

  // Before the last event: a client that has seen it finds the request counted and gone.
  void finish(DiffusionJob& job, const ImageFinished& finished) {
    leave(job,
          finished.cancelled ? &ImageStats::requests_cancelled : &ImageStats::requests_finished);
    job.sink->on_finished(finished);
  }

  void fail_job(DiffusionJob& job, const Error& error) {
    log(LogLevel::warn, "a request failed",
        {{"job_id", job.request.job_id}, {"error", error.what()}});
    const bool lost = error.code() == Code::device;
    if (lost) lost_ = true;
    leave(job, &ImageStats::requests_failed);
    job.sink->on_failed({error.code(), error.what()});
    if (lost) drop_waiting(error);
  }

  void leave(DiffusionJob& job, uint64_t ImageStats::* counter) {
    const std::scoped_lock lock(mutex_);
    ++(stats_.*counter);
    if (lost_) stats_.healthy = false;
    std::erase_if(jobs_, [&](const auto& each) { return each.get() == &job; });
    end_turn(job);
  }

  void drop_waiting(const Error& error) {
    log(LogLevel::error, "the device is lost", {{"error", error.what()}});
    const auto any = [](const DiffusionJob&) { return true; };
    for (const auto& job : take_waiting(any, &ImageStats::requests_failed)) {
      job->sink->on_failed({error.code(), error.what()});
    }
  }

  ImageSource source_;
  ImageEngineOptions options_;
  ImagePipeline pipeline_;
  ModelLoras loras_{source_, pipeline_};
  DeviceWatch watch_{*source_.device};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  ImageTurns turns_{{.alone = source_.parts_leave || !source_.device->host_accessible()}};
  ImageTurnPtr holder_;  // the turn's holder; null: none
  Clock::time_point turn_began_;
  std::vector<std::shared_ptr<DiffusionJob>> jobs_;  // begun or waiting
  std::vector<ImageTurnPtr> starting_;               // waiting for a thread
  int32_t beside_ = 0;                               // turns that are `beside`
  ImageStats stats_;
  bool stopping_ = false;
  std::atomic<bool> lost_{false};
  io::LargePictures large_pictures_;

  std::mutex join_mutex_;
  std::thread thread_;
};

io::Pixels QueuedImageEngine::upscale(const std::string& name, io::Pixels picture,
                                      const UpscaleHooks& hooks) {
  const models::Upscaler* network = find_upscaler(source_, name);
  check(network != nullptr, "upscaler", "there is no network \"", name, "\"");
  check_enlarged("image", *network, picture.width, picture.height);
  const auto turn = std::make_shared<ImageTurn>();
  turn->client = hooks.client;
  std::packaged_task<io::Pixels()> task([&, it = turn.get()] {
    const auto between = [&] {
      look_at(hooks);
      drop_cancelled();
      if (source_.device->host_accessible()) pause(*it);
    };
    const int64_t scale = network->scale();
    // Small pictures of several clients are enlarged at the same time; a large one is alone.
    if (source_.device->host_accessible()) {
      hold_pixels(*it, picture.width * scale * picture.height * scale);
    }
    between();
    return upscaled(*network, picture, *source_.device,
                    {.between = between, .tile_done = hooks.tile});
  });
  std::future<io::Pixels> result = task.get_future();
  turn->work = [&] {
    task();
    const std::scoped_lock lock(mutex_);
    end_turn(*turn);
  };
  await(turn, hooks);
  try {
    return result.get();
  } catch (const Error& error) {
    if (error.code() == Code::device) lose_device(error);
    throw;
  }
}

void QueuedImageEngine::await(const ImageTurnPtr& turn, const UpscaleHooks& hooks) {
  constexpr std::chrono::milliseconds kLook{20};
  std::unique_lock lock(mutex_);
  check_takes_work();
  turns_.add(turn);
  if (holder_ == nullptr) hand_over();
  while (!wake_.wait_for(lock, kLook, [&] { return turn->over; })) {
    if (turn->begun) continue;
    lock.unlock();
    std::optional<Error> unwanted;
    try {
      look_at(hooks);
    } catch (const Error& error) {
      unwanted = error;
    }
    lock.lock();
    if (!unwanted || turn->begun) continue;
    turns_.remove(*turn);
    throw Error(*unwanted);
  }
}

PipelineHooks QueuedImageEngine::hooks_of(DiffusionJob& job, PipelineTimes& times) {
  const auto going_on = [this, &job] {
    drop_cancelled();
    return !job.cancelled;
  };
  const bool in_host = source_.device->host_accessible();
  PipelineHooks hooks;
  // On a device with memory of its own, others' needs meanwhile might not fit.
  hooks.going_on = [this, &job, &times, going_on, in_host] {
    if (in_host) times.paused_ms += pause(job);
    return going_on();
  };
  hooks.decoding = [this, &job, &times, in_host](int64_t pixels) {
    if (in_host) times.paused_ms += hold_pixels(job, pixels);
  };
  hooks.beside = [this, &job, &times](const std::function<void()>& work, bool last) {
    if (last) leave_device(job);
    const auto in_place = [&] {
      const auto place = large_pictures_.enter(job.picture_pixels);
      work();
    };
    times.paused_ms += beside(job, in_place);
  };
  hooks.rest = [this, &job, &times] {
    if (job.picture_pixels > 0) job.settings.reset();
    {
      const std::scoped_lock lock(mutex_);
      job.resting = true;
      job.holds_pictures = false;
    }
    times.paused_ms += pause(job);
    if (job.cancelled) return;
    if (!job.settings) read_settings(job);
    loras_.set(job.request);
  };
  hooks.hurry = [&job] { return job.take_hurry(); };
  return hooks;
}

void QueuedImageEngine::read_settings(DiffusionJob& job) {
  const auto read = [&] { job.settings = read_pictures(job.request, job.picture_pixels); };
  if (job.picture_pixels == 0) return read();
  {
    const std::scoped_lock lock(mutex_);
    job.resting = job.holds_pictures = true;
  }
  beside(job, read);
}

double QueuedImageEngine::beside(DiffusionJob& job, const std::function<void()>& work) {
  {
    const std::scoped_lock lock(mutex_);
    turns_.spend(job, seconds_since(turn_began_));
    job.beside = true;
    ++beside_;
    hand_over();
  }
  const auto begin = Clock::now();
  std::exception_ptr failure;
  try {
    run_in_background(work);
  } catch (...) {
    failure = std::current_exception();
  }
  const auto end = Clock::now();
  {
    std::unique_lock lock(mutex_);
    turns_.spend(job, std::chrono::duration<double>(end - begin).count());
    job.beside = false;
    --beside_;
    if (failure) job.leaving = true;
    if (holder_ == nullptr) hand_over();
    wake_.wait(lock, [&] { return holder_.get() == &job; });
  }
  if (failure) std::rethrow_exception(failure);
  return seconds_since(end) * 1000;
}

void QueuedImageEngine::run(DiffusionJob& job) {
  ImageFinished finished;
  try {
    draw(job, finished);
  } catch (const Error& error) {
    if (error.code() != Code::cancelled || !job.cancelled) throw;
    finished.cancelled = true;
  }
  finish(job, finished);
}

void QueuedImageEngine::draw(DiffusionJob& job, ImageFinished& finished) {
  if (!job.cancelled && !job.settings) read_settings(job);
  if (job.cancelled) {
    finished.cancelled = true;
    return;
  }
  // Settings that are read again between batches are the same.
  job.request.seed = job.settings->seed;
  job.request.variation.seed = job.settings->variation_seed;
  loras_.set(job.request);
  const int32_t total = pipeline_.total_steps(job.request, *job.settings);
  job.sink->on_started(started_event(job, source_.info, total));
  ImageProgressReporter progress(*job.sink, total, job.request.count);
  PipelineTimes times;
  PipelineHooks hooks = hooks_of(job, times);
  hooks.step = [&](int32_t done) {
    finished.steps = done;
    progress.step(done);
    times.paused_ms += pause(job);
    drop_cancelled();
    return !job.cancelled;
  };
  hooks.preview = [&](const io::Pixels& preview, int32_t done, int32_t index) {
    job.sink->on_preview({io::encode_png(preview), done, index});
    return !job.cancelled;
  };
  hooks.tile = [&](const TileProgress& tiles) { progress.tiles(tiles); };
  hooks.image = [&](io::Pixels image, int32_t index) {
    ImageReady ready;
    const int64_t pixels = int64_t{image.width} * image.height;
    const auto code = [&] {
      const auto place = large_pictures_.enter(pixels);
      ready = image_event(job, source_.info, std::exchange(image, {}), index);
    };
    if (index + 1 == job.request.count) leave_device(job);
    if (pixels < kLargePixels) {
      code();
    } else {
      times.paused_ms += beside(job, code);
    }
    job.sink->on_image(std::move(ready));
    finished.images = index + 1;
    return hooks.going_on();
  };
  const bool whole = pipeline_.run(job.request, *job.settings, hooks, times);
  finished.cancelled = !whole && finished.images < job.request.count;
  finished.text_ms = times.text_ms;
  finished.sample_ms = times.sample_ms;
  finished.decode_ms = times.decode_ms;
  count(times, finished.images);
}

}  // namespace

std::unique_ptr<ImageEngine> make_image_engine(ImageSource source,
                                               const ImageEngineOptions& options) {
  return std::make_unique<QueuedImageEngine>(std::move(source), options);
}

}  // namespace rbee::engine
