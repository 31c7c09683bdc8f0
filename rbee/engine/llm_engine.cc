#include "rbee/engine/llm_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "rbee/core/log.h"
#include "rbee/engine/llm_job.h"
#include "rbee/engine/scheduler.h"
#include "rbee/engine/stepper.h"
#include "rbee/engine/warm_up.h"

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;
using JobPtr = std::shared_ptr<LlmJob>;
using Parts = std::vector<Scheduler::Part>;

// Of a step's tokens, those of prompts where others generate: one in this many. A GPU takes few
// tokens nearly as long as many.
constexpr int64_t kBesideShare = 4;
constexpr int64_t kBesideShareOfGpu = 2;

// Rows of a tile that GPUs multiply by.
constexpr int64_t kRowTileOfGpu = 128;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

LlmJob& job_of(const TicketPtr& ticket) {
  return static_cast<LlmJob&>(*ticket);  // the engine makes no others
}

LlmOptions resolve(const TextModel& text, LlmOptions options) {
  const int64_t context = text.info.context_length;
  check(options.max_running >= 1, "max_running", options.max_running, " is below 1");
  check(options.max_waiting >= 0, "max_waiting", options.max_waiting, " is negative");
  check(options.step_tokens >= 0, "step_tokens", options.step_tokens, " is negative");
  check(options.block_size >= 1, "block_size", options.block_size, " is below 1");
  if (options.step_tokens == 0) {
    options.step_tokens =
        std::max<int64_t>(text.device->host_accessible() ? 512 : 2048, options.max_running);
  }
  const int64_t most = INT32_MAX - options.block_size;  // slots are 32-bit numbers
  if (options.cache_tokens == 0) {
    const int64_t share = text.device->host_accessible() ? 8 : 2;
    const int64_t fits =
        text.device->memory().free / share / cache_token_bytes(*text.model, options.kv_dtype);
    const int64_t wanted = context * options.max_running;
    options.cache_tokens = std::clamp(std::min(fits, wanted), context, most);
  }
  check(options.cache_tokens >= context && options.cache_tokens <= most, "cache_tokens",
        options.cache_tokens, " is outside of ", context, " (the context) to ", most);
  return options;
}

SchedulerOptions scheduling(const LlmOptions& options, const Device& device) {
  const bool host = device.host_accessible();
  const int64_t share = host ? kBesideShare : kBesideShareOfGpu;
  return {.max_running = options.max_running,
          .step_tokens = options.step_tokens,
          .beside_tokens = std::max<int64_t>(options.step_tokens / share, 1),
          .row_tile = host ? 1 : kRowTileOfGpu};
}

class LlmEngine final : public Engine {
 public:
  LlmEngine(TextModel model, const LlmOptions& options)
      : text_(std::move(model)),
        constraints_(*text_.tokenizer, text_.end_tokens, known_tokens()),
        options_(resolve(text_, options)),
        stepper_(*text_.model, *text_.device,
                 {.cache_tokens = options_.cache_tokens,
                  .block_size = options_.block_size,
                  .kv_dtype = options_.kv_dtype}),
        scheduler_(stepper_.pool(), scheduling(options_, *text_.device)) {
    text_.info.kv_cache_bytes = stepper_.cache_bytes();
    stats_.kv_blocks_total = stepper_.pool().total();
    prepare();
    thread_ = std::thread([this] { loop(); });
  }

  ~LlmEngine() override { stop(); }

  const ModelInfo& model() const override { return text_.info; }

  void submit(Request request, std::shared_ptr<EventSink> sink) override {
    validate(request);
    // On the caller's thread: a large grammar does not hold up the others' answers.
    auto grammar = constraints_.compile(request.constraint);
    auto job = std::make_shared<LlmJob>(std::move(request), std::move(sink), stepper_.pool(), text_,
                                        std::move(grammar));
    const std::scoped_lock lock(mutex_);
    if (!stats_.healthy) fail(Code::device, "engine", "the device has failed");
    if (stopping_) fail(Code::unsupported, "engine", "stopping, takes no new work");
    const auto places =
        static_cast<size_t>(options_.max_waiting) + static_cast<size_t>(options_.max_running);
    if (jobs_.size() >= places) {
      fail(Code::out_of_memory, "engine", "the queue of ", options_.max_waiting, " is full");
    }
    jobs_.push_back(job);
    arrived_.push_back(std::move(job));
    wake_.notify_one();
  }

  bool cancel(const std::string& job_id) override {
    const std::scoped_lock lock(mutex_);
    for (const JobPtr& job : jobs_) {
      if (job->request().job_id != job_id) continue;
      job->cancelled = true;
      cancels_ = true;
      return true;
    }
    return false;
  }

  EngineStats stats() const override {
    const MemoryInfo memory = device_memory();
    const std::scoped_lock lock(mutex_);
    EngineStats out = stats_;
    out.device_memory_bytes = memory.total;
    out.device_memory_free_bytes = memory.free;
    out.waiting = static_cast<int32_t>(jobs_.size()) - out.running;
    return out;
  }

  std::vector<int32_t> tokenize(std::string_view text,
                                const TokenizeOptions& options) const override {
    return text_.tokenizer->encode(
        text, {.add_special = options.add_special, .parse_special = options.parse_special});
  }
  std::string detokenize(const std::vector<int32_t>& ids) const override {
    return text_.tokenizer->decode(ids, true);
  }
  std::string token_bytes(int32_t id) const override { return text_.tokenizer->piece(id, true); }
  std::string render(const std::vector<ChatMessage>& messages) const override {
    return text_.render(messages);
  }

  void stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      for (const JobPtr& job : jobs_) job->cancelled = true;
      cancels_ = true;
      wake_.notify_one();
    }
    const std::scoped_lock lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void prepare() {
    const auto begin = Clock::now();
    warm_up(stepper_, *text_.device,
            {.context = text_.info.context_length,
             .chunk = options_.step_tokens,
             .sequences = options_.max_running,
             .vocab = known_tokens()});
    log(LogLevel::info, "warmed up", {{"ms", cat(std::llround(seconds_since(begin) * 1000))}});
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

  void loop() {
    while (take_in()) {
      drop_cancelled();
      // What fails here has nothing to do with one request or another.
      guarded([&](const Error& error) { fail_all(error); },
              [&] {
                let_join();
                step(scheduler_.plan());
                if (sends_at_once() || scheduler_.running().empty()) send_texts();
              });
    }
  }

  // Where a device computes by itself, texts go out while it is at the next step.
  bool sends_at_once() const { return text_.device->host_accessible(); }

  void send_texts() {
    for (const JobPtr& job : unsent_) job->send();
    unsent_.clear();
  }

  // Runs the work; what it throws is for `failed`, as an Error.
  template <typename Failed, typename Work>
  static void guarded(Failed failed, Work work) {
    try {
      work();
    } catch (const Error& error) {
      failed(error);
    } catch (const std::bad_alloc&) {
      failed(Error(Code::out_of_memory, "engine", "the host has no memory left"));
    } catch (const std::exception& error) {
      failed(Error(Code::internal, "engine", error.what()));
    }
  }

  // Waits for work and gives it to the scheduler. False: time to end.
  bool take_in() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    std::ranges::move(arrived_, std::back_inserter(following_));
    arrived_.clear();
    std::erase_if(following_, [&](const JobPtr& job) {
      if (follows_silence(*job)) return false;
      scheduler_.add(job);
      return true;
    });
    return !stopping_ || !jobs_.empty();
  }

  // Under the lock. Whom it follows has yet to come to the end of its prompt.
  bool follows_silence(const LlmJob& job) const {
    const std::string& leader = job.request().follows;
    if (leader.empty()) return false;
    const auto found = std::ranges::find(
        jobs_, leader, [](const JobPtr& other) { return other->request().job_id; });
    return found != jobs_.end() && found->get() != &job && !(*found)->speaks();
  }

  void drop_cancelled() {
    std::vector<JobPtr> cancelled;
    {
      const std::scoped_lock lock(mutex_);
      if (!std::exchange(cancels_, false)) return;
      std::ranges::copy_if(jobs_, std::back_inserter(cancelled),
                           [](const JobPtr& job) { return job->cancelled.load(); });
    }
    for (const JobPtr& job : cancelled) finish(*job, StopReason::cancelled);
  }

  void let_join() {
    while (const TicketPtr ticket = scheduler_.next()) {
      LlmJob& job = job_of(ticket);
      bool ready = false;
      guarded([&](const Error& error) { fail_one(job, error); },
              [&] {
                job.encode();
                ready = true;
              });
      if (!ready) continue;
      if (!scheduler_.join()) break;
      note_scheduler();
      job.start();
    }
  }

  // Evaluates the parts. What cannot be evaluated together is evaluated apart, so that a request
  // fails for itself alone.
  void step(const Parts& parts) {
    if (parts.empty()) return;
    std::vector<int64_t> cached;
    for (const Scheduler::Part& part : parts) cached.push_back(part.ticket->sequence.cached);
    const auto failed = [&](const Error& error) {
      if (error.code() == Code::device) return fail_all(error);
      for (size_t i = 0; i < parts.size(); ++i) parts[i].ticket->sequence.cached = cached[i];
      if (parts.size() > 1) log(LogLevel::warn, "a shared step failed", {{"error", error.what()}});
      for (const Scheduler::Part& part : parts) {
        if (!scheduler_.runs(*part.ticket)) continue;  // it came to its end meanwhile
        if (parts.size() == 1) return fail_one(job_of(part.ticket), error);
        step({part});
      }
    };
    guarded(failed, [&] { run(parts, cached); });
  }

  struct Batch {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;  // of the sampled
    std::vector<JobPtr> sampled;
    int64_t tokens = 0;
  };

  static Batch make_batch(const Parts& parts) {
    Batch out;
    for (const Scheduler::Part& part : parts) {
      Sequence& sequence = part.ticket->sequence;
      out.work.push_back({&sequence, part.count});
      out.tokens += part.count;
      if (sequence.cached + part.count == sequence.length()) {
        out.rows.push_back(static_cast<int32_t>(out.tokens - 1));
        out.sampled.push_back(std::static_pointer_cast<LlmJob>(part.ticket));
      }
    }
    return out;
  }

  // cached: of each part before the step.
  void run(const Parts& parts, std::span<const int64_t> cached) {
    const auto begin = Clock::now();
    const Batch batch = make_batch(parts);
    LeadersWanted wanted{.count = 0, .vocab = known_tokens(), .scales = {}};
    std::vector<float> scales;
    const LeaderRows found = evaluate(batch, wanted, scales);
    std::vector<std::optional<Chosen>> chosen;
    chosen.reserve(batch.sampled.size());
    for (size_t i = 0; i < batch.sampled.size(); ++i) {
      chosen.push_back(choose(*batch.sampled[i], found, static_cast<int64_t>(i), wanted));
      if (lost_) return;
    }
    Scheduler::publish(parts);
    // Counted before the tokens are sent; the time of sending follows.
    count_step(parts, cached, batch);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i]) take_token(batch.sampled[i], *chosen[i]);
    }
    add_time(parts, batch, seconds_since(begin));
  }

  // Padding rows of the output matrix are no tokens.
  int64_t known_tokens() const {
    return std::min<int64_t>(text_.tokenizer->vocab_size(), text_.info.vocab_size);
  }

  // The largest logits of the sampled rows, which nearly always decide the next token. wanted:
  // what there is of each row. scales: its memory.
  LeaderRows evaluate(const Batch& batch, LeadersWanted& wanted, std::vector<float>& scales) {
    bool sums = false;
    for (const JobPtr& job : batch.sampled) {
      const Sampler::Wanted own = job->sampler().wanted(wanted.vocab);
      wanted.count = std::max({wanted.count, own.leaders, scored_leaders(*job, own)});
      sums |= own.sum || job->request().logprobs;
      scales.push_back(own.sum ? job->sampler().scale() : 1.0f);
    }
    if (wanted.count == 0) {
      stepper_.run(batch.work, batch.rows);
      send_texts();
      return {};
    }
    wanted.count = lead_count(wanted.count, wanted.vocab);
    if (sums) wanted.scales = scales;
    stepper_.begin(batch.work, batch.rows, wanted);
    send_texts();
    return stepper_.leaders();
  }

  // What log probabilities take of a row whose leaders are looked for anyway.
  static int64_t scored_leaders(const LlmJob& job, const Sampler::Wanted& own) {
    if (own.leaders == 0) return 0;
    return std::max(job.request().logprobs.value_or(0), 1);
  }

  struct Chosen {
    int32_t id;
    std::optional<RowLogprobs> scored;
  };

  // The next token of a sampled sequence; whole rows are read where the leaders do not decide it.
  // Absent when the request failed by it.
  std::optional<Chosen> choose(LlmJob& job, const LeaderRows& found, int64_t row,
                               const LeadersWanted& wanted) {
    std::optional<Chosen> out;
    const auto failed = [&](const Error& error) {
      if (error.code() == Code::device) return fail_all(error);
      fail_one(job, error);
    };
    guarded(failed, [&] {
      out = choose_from_leaders(job, found, row, wanted);
      if (!out) out = choose_from_row(job, row, wanted.vocab);
    });
    return out;
  }

  std::optional<Chosen> choose_from_leaders(LlmJob& job, const LeaderRows& found, int64_t row,
                                            const LeadersWanted& wanted) {
    if (wanted.count == 0) return std::nullopt;
    const Leaders leaders = row_of(found, row, wanted);
    const std::optional<int32_t> id = job.sampler().sample(leaders, job.sequence.tokens);
    if (!id) return std::nullopt;
    check_from_device(*id, wanted.vocab);
    Chosen out{*id, {}};
    if (const std::optional<int32_t> count = job.request().logprobs) {
      // The sum is at another scale where the nucleus is cut after the temperature.
      const bool unscaled = wanted.scales.empty() || wanted.scales[static_cast<size_t>(row)] == 1;
      out.scored = unscaled && *count <= wanted.count
                       ? logprobs_of(leaders, *id, *count)
                       : logprobs_of(whole_row(row, wanted.vocab), *id, *count);
    }
    return out;
  }

  Chosen choose_from_row(LlmJob& job, int64_t row, int64_t vocab) {
    const std::span<float> logits = whole_row(row, vocab);
    const std::optional<int32_t> count = job.request().logprobs;
    std::vector<float> unchanged;  // by the sampler
    if (count) unchanged.assign(logits.begin(), logits.end());
    Chosen out{job.sampler().sample(logits, job.sequence.tokens), {}};
    if (count) out.scored = logprobs_of(unchanged, out.id, *count);
    return out;
  }

  std::span<float> whole_row(int64_t row, int64_t vocab) {
    return stepper_.logit_row(row).first(static_cast<size_t>(vocab));
  }

  static Leaders row_of(const LeaderRows& found, int64_t row, const LeadersWanted& wanted) {
    const auto count = static_cast<size_t>(wanted.count);
    const auto at = static_cast<size_t>(row);
    return {.values = found.values.subspan(at * count, count),
            .ids = found.ids.subspan(at * count, count),
            .sum = found.sums.empty() ? 0.0f : found.sums[at],
            .vocab = wanted.vocab};
  }

  // What a failing device gave must not become an index of the host's.
  static void check_from_device(int32_t id, int64_t vocab) {
    if (id < 0 || id >= vocab) {
      fail(Code::internal, "sample", "token ", id, " is outside of the ", vocab, " known ones");
    }
  }

  void take_token(const JobPtr& job, const Chosen& chosen) {
    const RowLogprobs* scored = chosen.scored ? &*chosen.scored : nullptr;
    guarded([&](const Error& error) { fail_one(*job, error); },
            [&] {
              if (const auto reason = job->take(chosen.id, scored)) return finish(*job, *reason);
              unsent_.push_back(job);
            });
  }

  void count_step(const Parts& parts, std::span<const int64_t> cached, const Batch& batch) {
    int64_t prompt_tokens = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      prompt_tokens += job_of(parts[i].ticket).count_prompt_tokens(cached[i]);
    }
    {
      const std::scoped_lock lock(mutex_);
      stats_.prompt_tokens += static_cast<uint64_t>(prompt_tokens);
      stats_.generated_tokens += batch.sampled.size();
    }
    note_scheduler();
  }

  void add_time(const Parts& parts, const Batch& batch, double seconds) {
    const auto ones =
        std::ranges::count_if(parts, [](const Scheduler::Part& part) { return part.count == 1; });
    const double generation = static_cast<double>(ones) / static_cast<double>(batch.tokens);
    const std::scoped_lock lock(mutex_);
    stats_.decode_seconds += seconds * generation;
    stats_.prompt_seconds += seconds * (1 - generation);
  }

  void note_scheduler() {
    const KvBlockPool& pool = stepper_.pool();
    const SchedulerCounts& counts = scheduler_.counts();
    const std::scoped_lock lock(mutex_);
    stats_.running = static_cast<int32_t>(scheduler_.running().size());
    stats_.preemptions = counts.preemptions;
    stats_.prefix_queries = counts.prefix_queries;
    stats_.prefix_hits = counts.prefix_hits;
    stats_.kv_blocks_used = pool.used();
    stats_.kv_blocks_kept = pool.kept();
  }

  void finish(LlmJob& job, StopReason reason) {
    const Finished finished = job.finish(reason);
    remove(job, finished.reason == StopReason::cancelled ? &EngineStats::requests_cancelled
                                                         : &EngineStats::requests_finished)
        ->sink()
        .on_finished(finished);
  }

  void fail_one(LlmJob& job, const Error& error) {
    job.send();
    log(LogLevel::warn, "a request failed",
        {{"job_id", job.request().job_id}, {"error", error.what()}});
    remove(job, &EngineStats::requests_failed)->sink().on_failed({error.code(), error.what()});
  }

  // Nothing that runs can go on. The engine can, with what waits, unless the device is lost.
  void fail_all(const Error& error) {
    if (error.code() != Code::device) {
      const std::vector<TicketPtr> running = scheduler_.running();
      for (const TicketPtr& ticket : running) fail_one(job_of(ticket), error);
      return;
    }
    lost_ = true;
    log(LogLevel::error, "the device is lost", {{"error", error.what()}});
    std::deque<JobPtr> jobs;
    {
      // Before the events: who has seen one finds the engine unhealthy.
      const std::scoped_lock lock(mutex_);
      stats_.healthy = false;
      jobs = jobs_;
    }
    for (const JobPtr& job : jobs) fail_one(*job, error);
  }

  // Before the last event: who has seen it finds the request counted and its blocks free.
  JobPtr remove(LlmJob& job, uint64_t EngineStats::* counter) {
    scheduler_.remove(job);
    note_scheduler();
    const std::scoped_lock lock(mutex_);
    const auto at = std::ranges::find(jobs_, &job, &JobPtr::get);
    JobPtr held = std::move(*at);
    jobs_.erase(at);
    std::erase(arrived_, held);
    std::erase(following_, held);
    ++(stats_.*counter);
    return held;
  }

  TextModel text_;
  ConstraintCompiler constraints_;
  const LlmOptions options_;
  Stepper stepper_;
  Scheduler scheduler_;           // engine thread only
  std::deque<JobPtr> following_;  // engine thread only: the scheduler does not know them yet
  std::vector<JobPtr> unsent_;    // engine thread only: jobs with text to send
  std::atomic<bool> lost_ = false;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::deque<JobPtr> jobs_;     // all that have had no last event
  std::deque<JobPtr> arrived_;  // of these, what the scheduler does not know yet
  bool cancels_ = false;        // somebody cancelled since the engine looked
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
