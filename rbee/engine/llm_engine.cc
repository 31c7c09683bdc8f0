#include "rbee/engine/llm_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <random>
#include <thread>

#include "rbee/core/log.h"
#include "rbee/engine/sampler.h"
#include "rbee/engine/stepper.h"
#include "rbee/engine/stop_matcher.h"
#include "rbee/engine/warm_up.h"

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Below 2^53, so that a JavaScript client can send it back.
uint64_t fresh_seed() {
  std::random_device device;
  return ((uint64_t{device()} << 32) | device()) & ((uint64_t{1} << 53) - 1);
}

// One request, from the queue to its last event. Owned by the engine's thread once taken.
struct Job {
  Request request;
  std::shared_ptr<EventSink> sink;
  std::atomic<bool> cancelled{false};
};

// A request that takes part in steps.
struct Running {
  Running(std::shared_ptr<Job> the_job, const text::Tokenizer& tokenizer, KvBlockPool& pool,
          uint64_t seed)
      : job(std::move(the_job)),
        sequence(pool),
        sampler(job->request.sampling, seed),
        detokenizer(tokenizer),
        stops(job->request.stop) {}

  std::shared_ptr<Job> job;
  Sequence sequence;
  Sampler sampler;
  text::DecodeStream detokenizer;
  StopMatcher stops;
  int32_t prompt_tokens = 0;
  int32_t tokens_out = 0;
  int32_t pieces_out = 0;
  Clock::time_point start = Clock::now();
  double prompt_ms = 0;

  bool in_prompt() const { return sequence.cached < prompt_tokens; }
};
using RunningAt = std::list<Running>::iterator;

class LlmEngine final : public Engine {
 public:
  LlmEngine(TextModel model, const LlmOptions& options)
      : text_(std::move(model)),
        options_(options),
        stepper_(*text_.model, *text_.device,
                 {.cache_tokens = int64_t{text_.info.context_length} * options.max_running,
                  .block_size = options.block_size,
                  .kv_dtype = options.kv_dtype}) {
    check(options.max_running >= 1 && options.max_waiting >= 0 && options.chunk >= 1, "engine",
          "max_running and chunk are at least 1, max_waiting at least 0");
    text_.info.kv_cache_bytes = stepper_.cache_bytes();
    stats_.kv_blocks_total = stepper_.pool().total();
    prepare();
    thread_ = std::thread([this] { loop(); });
  }

  ~LlmEngine() override { stop(); }

  const ModelInfo& model() const override { return text_.info; }

  void submit(Request request, std::shared_ptr<EventSink> sink) override {
    validate(request);
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    job->sink = std::move(sink);
    const std::scoped_lock lock(mutex_);
    if (!stats_.healthy) fail(Code::device, "engine", "the device has failed");
    if (stopping_) fail(Code::unsupported, "engine", "stopping, takes no new work");
    if (waiting_.size() >= static_cast<size_t>(options_.max_waiting) + idle_places()) {
      fail(Code::out_of_memory, "engine", "the queue of ", options_.max_waiting, " is full");
    }
    waiting_.push_back(std::move(job));
    wake_.notify_one();
  }

  bool cancel(const std::string& job_id) override {
    const std::scoped_lock lock(mutex_);
    for (const auto* list : {&waiting_, &taken_}) {
      for (const std::shared_ptr<Job>& job : *list) {
        if (job->request.job_id != job_id) continue;
        job->cancelled = true;
        wake_.notify_one();
        return true;
      }
    }
    return false;
  }

  EngineStats stats() const override {
    const MemoryInfo memory = device_memory();
    const std::scoped_lock lock(mutex_);
    EngineStats out = stats_;
    out.device_memory_bytes = memory.total;
    out.device_memory_free_bytes = memory.free;
    out.running = static_cast<int32_t>(taken_.size());
    out.waiting = static_cast<int32_t>(waiting_.size());
    return out;
  }

  void stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      for (const std::shared_ptr<Job>& job : waiting_) job->cancelled = true;
      for (const std::shared_ptr<Job>& job : taken_) job->cancelled = true;
      wake_.notify_one();
    }
    const std::scoped_lock lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void prepare() {
    const auto begin = Clock::now();
    warm_up(
        stepper_, *text_.device,
        {.context = text_.info.context_length, .chunk = options_.chunk, .vocab = known_tokens()});
    log(LogLevel::info, "warmed up",
        {{"ms", cat(std::llround(milliseconds(Clock::now() - begin)))}});
  }

  // A lost device is not asked; the memory of a CPU is the machine's.
  MemoryInfo device_memory() const {
    if (lost_ || text_.device->host_accessible()) return {};
    try {
      return text_.device->memory();
    } catch (const Error&) {
      return {};
    }
  }

  size_t idle_places() const {
    const auto places = static_cast<size_t>(options_.max_running);
    return places - std::min(places, taken_.size());
  }

  void loop() {
    while (admit()) {
      drop_cancelled();
      if (running_.empty()) continue;
      try {
        step();
      } catch (const Error& error) {
        fail_all(error);
      } catch (const std::bad_alloc&) {
        fail_all(Error(Code::out_of_memory, "engine", "the host has no memory left"));
      } catch (const std::exception& error) {
        fail_all(Error(Code::internal, "engine", error.what()));
      }
    }
  }

  // Waits for work and moves what fits from the queue into running_. False: time to end.
  bool admit() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty() || !running_.empty(); });
    if (stopping_ && waiting_.empty() && running_.empty()) return false;
    while (!waiting_.empty() && running_.size() < static_cast<size_t>(options_.max_running)) {
      std::shared_ptr<Job> job = std::move(waiting_.front());
      waiting_.pop_front();
      taken_.push_back(job);
      lock.unlock();
      start(std::move(job));
      lock.lock();
    }
    return true;
  }

  void start(std::shared_ptr<Job> job) {
    const uint64_t seed = job->request.sampling.seed.value_or(fresh_seed());
    running_.emplace_back(std::move(job), *text_.tokenizer, stepper_.pool(), seed);
    const auto it = std::prev(running_.end());
    try {
      Running& run = *it;
      run.sequence.tokens = text_.encode(run.job->request);
      const auto length = static_cast<int64_t>(run.sequence.tokens.size());
      check(length > 0, "prompt", "it has no tokens");
      check(length < text_.info.context_length, "prompt", "its ", length,
            " tokens leave no room in the context of ", text_.info.context_length);
      run.prompt_tokens = static_cast<int32_t>(length);
      run.job->sink->on_started({text_.info.id, seed, run.prompt_tokens});
    } catch (const Error& error) {
      fail_one(it, error);
    } catch (const std::exception& error) {
      fail_one(it, Error(Code::internal, "engine", error.what()));
    }
  }

  void drop_cancelled() {
    for (const std::shared_ptr<Job>& job : cancelled_waiting()) {
      job->sink->on_finished({.reason = StopReason::cancelled});
    }
    for (auto it = running_.begin(); it != running_.end();) {
      const auto here = it++;
      if (here->job->cancelled) finish(here, StopReason::cancelled);
    }
  }

  std::vector<std::shared_ptr<Job>> cancelled_waiting() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<Job>> out;
    std::erase_if(waiting_, [&](const std::shared_ptr<Job>& job) {
      if (job->cancelled) out.push_back(job);
      return job->cancelled.load();
    });
    stats_.requests_cancelled += out.size();
    return out;
  }

  // Every running sequence takes part: prompts by chunks, others by their last token.
  void step() {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    std::vector<RunningAt> sampled;
    int64_t batch_rows = 0;
    for (auto it = running_.begin(); it != running_.end(); ++it) {
      const auto length = static_cast<int64_t>(it->sequence.tokens.size());
      const int64_t count = std::min<int64_t>(length - it->sequence.cached, options_.chunk);
      work.push_back({&it->sequence, count});
      batch_rows += count;
      if (it->sequence.cached + count == length) {
        rows.push_back(static_cast<int32_t>(batch_rows - 1));
        sampled.push_back(it);
      }
    }
    const bool prompt_step =
        std::ranges::any_of(running_, [](const Running& run) { return run.in_prompt(); });
    const auto begin = Clock::now();
    const std::vector<int32_t> ids = evaluate(work, rows, sampled);
    // Counted before the tokens are sent; the time of sending follows.
    count_step(prompt_step ? batch_rows : 0, static_cast<int64_t>(sampled.size()));
    for (size_t i = 0; i < sampled.size(); ++i) take_token(sampled[i], ids[i]);
    const std::scoped_lock lock(mutex_);
    (prompt_step ? stats_.prompt_seconds : stats_.decode_seconds) +=
        milliseconds(Clock::now() - begin) / 1000;
  }

  void count_step(int64_t prompt_tokens, int64_t generated) {
    const std::scoped_lock lock(mutex_);
    stats_.prompt_tokens += static_cast<uint64_t>(prompt_tokens);
    stats_.generated_tokens += static_cast<uint64_t>(generated);
    stats_.kv_blocks_used = stepper_.pool().used();
  }

  // Padding rows of the output matrix are no tokens.
  int64_t known_tokens() const {
    return std::min<int64_t>(text_.tokenizer->vocab_size(), text_.info.vocab_size);
  }

  // The next token of each sampled sequence. The largest logits nearly always decide it; whole rows
  // are read where they do not.
  std::vector<int32_t> evaluate(std::span<const Stepper::Work> work, std::span<const int32_t> rows,
                                std::span<const RunningAt> sampled) {
    std::vector<float> scales;
    LeadersWanted wanted{.count = 0, .vocab = known_tokens(), .scales = {}};
    bool sums = false;
    for (const RunningAt run : sampled) {
      const Sampler::Wanted own = run->sampler.wanted(wanted.vocab);
      wanted.count = std::max(wanted.count, own.leaders);
      sums |= own.sum;
      scales.push_back(run->sampler.scale());
    }
    LeaderRows found;
    if (wanted.count > 0) {
      wanted.count = lead_count(wanted.count, wanted.vocab);
      if (sums) wanted.scales = scales;
      found = stepper_.step(work, rows, wanted);
    } else {
      stepper_.run(work, rows);
    }
    std::vector<int32_t> ids;
    ids.reserve(sampled.size());
    for (size_t i = 0; i < sampled.size(); ++i) {
      ids.push_back(choose(*sampled[i], found, static_cast<int64_t>(i), wanted));
    }
    return ids;
  }

  int32_t choose(Running& run, const LeaderRows& found, int64_t row, const LeadersWanted& wanted) {
    const auto count = static_cast<size_t>(wanted.count);
    const auto at = static_cast<size_t>(row);
    std::optional<int32_t> id;
    if (count > 0) {
      id = run.sampler.sample({.values = found.values.subspan(at * count, count),
                               .ids = found.ids.subspan(at * count, count),
                               .sum = found.sums.empty() ? 0.0f : found.sums[at],
                               .vocab = wanted.vocab},
                              run.sequence.tokens);
    }
    if (id) {
      check_from_device(*id, wanted.vocab);
      return *id;
    }
    const std::span<float> logits = stepper_.logit_row(row);
    return run.sampler.sample(logits.first(static_cast<size_t>(wanted.vocab)), run.sequence.tokens);
  }

  // What a failing device gave must not become an index of the host's.
  static void check_from_device(int32_t id, int64_t vocab) {
    if (id < 0 || id >= vocab) {
      fail(Code::internal, "sample", "token ", id, " is outside of the ", vocab, " known ones");
    }
  }

  void take_token(RunningAt it, int32_t id) {
    Running& run = *it;
    if (run.tokens_out == 0) run.prompt_ms = milliseconds(Clock::now() - run.start);
    if (std::ranges::binary_search(text_.end_tokens, id)) return finish(it, StopReason::eos);
    run.sequence.tokens.push_back(id);
    ++run.tokens_out;
    emit(run, run.stops.push(run.detokenizer.push(id)));
    if (!run.stops.matched().empty()) return finish(it, StopReason::stop_sequence);
    if (run.tokens_out >= run.job->request.max_tokens) return finish(it, StopReason::max_tokens);
    if (static_cast<int64_t>(run.sequence.tokens.size()) >= text_.info.context_length) {
      finish(it, StopReason::context_full);
    }
  }

  static void emit(Running& run, std::string text) {
    if (text.empty()) return;
    run.job->sink->on_token({std::move(text), run.pieces_out++});
  }

  void finish(RunningAt it, StopReason reason) {
    Running& run = *it;
    if (run.stops.matched().empty()) {
      emit(run, run.stops.push(run.detokenizer.flush()));
      if (run.stops.matched().empty()) {
        emit(run, run.stops.flush());
      } else {
        reason = StopReason::stop_sequence;
      }
    }
    const double total = milliseconds(Clock::now() - run.start);
    const double prompt = run.prompt_ms > 0 ? run.prompt_ms : total;
    const Finished finished{.reason = reason,
                            .stop_sequence = run.stops.matched(),
                            .prompt_tokens = run.prompt_tokens,
                            .tokens_out = run.tokens_out,
                            .prompt_ms = prompt,
                            .decode_ms = total - prompt};
    remove(it, reason == StopReason::cancelled ? &EngineStats::requests_cancelled
                                               : &EngineStats::requests_finished)
        ->sink->on_finished(finished);
  }

  void fail_one(RunningAt it, const Error& error) {
    log(LogLevel::warn, "a request failed",
        {{"job_id", it->job->request.job_id}, {"error", error.what()}});
    remove(it, &EngineStats::requests_failed)->sink->on_failed({error.code(), error.what()});
  }

  // A step failed: its sequences cannot go on, the engine can unless the device is lost.
  void fail_all(const Error& error) {
    const bool lost = error.code() == Code::device;
    // Before the events: who has seen one finds the engine unhealthy.
    if (lost) {
      lost_ = true;
      log(LogLevel::error, "the device is lost", {{"error", error.what()}});
      const std::scoped_lock lock(mutex_);
      stats_.healthy = false;
    }
    while (!running_.empty()) fail_one(running_.begin(), error);
    if (!lost) return;
    std::deque<std::shared_ptr<Job>> dropped;
    {
      const std::scoped_lock lock(mutex_);
      dropped.swap(waiting_);
      stats_.requests_failed += dropped.size();
    }
    for (const std::shared_ptr<Job>& job : dropped) {
      job->sink->on_failed({error.code(), error.what()});
    }
  }

  // Before the last event: who has seen it finds the request counted and its blocks free.
  std::shared_ptr<Job> remove(RunningAt it, uint64_t EngineStats::* counter) {
    const std::shared_ptr<Job> job = it->job;
    running_.erase(it);
    const std::scoped_lock lock(mutex_);
    std::erase(taken_, job);
    ++(stats_.*counter);
    stats_.kv_blocks_used = stepper_.pool().used();
    return job;
  }

  TextModel text_;
  LlmOptions options_;
  Stepper stepper_;
  std::list<Running> running_;  // engine thread only
  std::atomic<bool> lost_ = false;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::deque<std::shared_ptr<Job>> taken_;
  EngineStats stats_;
  bool stopping_ = false;

  std::mutex join_mutex_;  // one stop() at a time joins
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Engine> make_llm_engine(TextModel model, const LlmOptions& options) {
  return std::make_unique<LlmEngine>(std::move(model), options);
}

}  // namespace rbee::engine
