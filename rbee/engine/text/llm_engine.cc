#include "rbee/engine/text/llm_engine.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "rbee/core/log.h"
#include "rbee/engine/api/kv_events.h"
#include "rbee/engine/common/device_watch.h"
#include "rbee/engine/text/draft/drafter.h"
#include "rbee/engine/text/form/mask_turns.h"
#include "rbee/engine/text/group/text_group.h"
#include "rbee/engine/text/guarded.h"
#include "rbee/engine/text/llm_job.h"
#include "rbee/engine/text/llm_scheduling.h"
#include "rbee/engine/text/prompt/request_pictures.h"
#include "rbee/engine/text/scheduler.h"
#include "rbee/engine/text/step/step_batch.h"
#include "rbee/engine/text/step/step_outcome.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/engine/text/step/warm_up.h"

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;
using JobPtr = std::shared_ptr<LlmJob>;
using Parts = std::vector<Scheduler::Part>;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

LlmJob& job_of(const TicketPtr& ticket) {
  return static_cast<LlmJob&>(*ticket);  // the engine makes no others
}

class LlmEngine final : public TextEngine {
 public:
  LlmEngine(TextModel model, const LlmOptions& options, std::optional<TextModel> draft)
      : text_(std::move(model)),
        constraints_(*text_.tokenizer, text_.end_tokens, known_tokens(),
                     options.grammar_cache_bytes),
        options_(resolve(text_, draft ? &*draft : nullptr, options)),
        kv_events_(make_event_log(options_)),
        block_events_(options_.kv_event_seed),
        stepper_(*text_.model, *text_.device, stepping(options_, text_)),
        loras_(*text_.model, options_.loras, text_.group.get()),
        drafter_(stepper_.pool(), make_draft(std::move(draft))),
        scheduler_(stepper_.pool(), scheduling(options_, text_)) {
    tell_cache_bytes(stepper_, text_);
    text_.info.host_cache_bytes = host_cache_bytes(options_, text_);
    text_.info.max_running = options_.max_running;
    text_.info.max_waiting = options_.max_waiting;
    if (const models::PictureEncoder* pictures = text_.model->pictures()) {
      pictures_.emplace(*pictures, *text_.device, options_.picture_cache_bytes);
      text_.info.max_pictures = options_.max_pictures;
    }
    if (DraftModel* helper = drafter_.model()) {
      const int64_t cache = helper->stepper().cache_bytes();
      text_.info.kv_cache_bytes += cache;
      text_.info.weight_bytes += helper->info().weight_bytes;
      if (text_.group) text_.info.rank_bytes.front() += cache + helper->info().weight_bytes;
    }
    note_blocks(stepper_.pool(), stats_);
    if (kv_events_) stepper_.pool().use_events(block_events_);
    prepare();
    thread_ = std::thread([this] { loop(); });
  }

  ~LlmEngine() override { stop(); }

  const ModelInfo& model() const override { return text_.info; }
  std::shared_ptr<const KvEventLog> kv_events() const override { return kv_events_; }

  void submit(TextRequest request, std::shared_ptr<EventSink> sink) override {
    validate(request);
    check(options_.priorities || request.priority >= 0, "priority", request.priority,
          " is below 0, which this worker takes with --scheduling-policy priority alone");
    const bool speculative =
        request.speculative.value_or(options_.speculative) && !stepper_.pool().has_states();
    LlmJobOptions job_options;
    job_options.draft_tokens = speculative ? options_.draft_tokens : 0;
    job_options.lora = loras_.take(request.lora);
    // The caller's thread prepares pictures, prompts and grammars, so no other answer waits for it.
    job_options.pictures = pictures_of(request);
    job_options.prompt = text_.prompt_of(request);
    AnswerForm form = form_of(request, text_.format);
    if (form.binds()) {
      if (request.chat.split) form.reasoning = reasoning_after(job_options.prompt, form.format);
      job_options.grammar = constraints_.compile(form);
    }
    auto job = std::make_shared<LlmJob>(std::move(request), std::move(sink), stepper_.pool(), text_,
                                        std::move(job_options));
    const std::scoped_lock lock(mutex_);
    if (!stats_.healthy || lost()) fail(Code::device, "engine", "the device has failed");
    if (stopping_) fail(Code::unsupported, "engine", "stopping, takes no new work");
    if (!has_place_for(job->client)) {
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
      job->cancelled = cancels_ = true;
      return true;
    }
    return false;
  }

  EngineStats stats() const override {
    const MemoryInfo memory = lost_ ? MemoryInfo{} : watch_.memory();
    const std::scoped_lock lock(mutex_);
    EngineStats out = stats_;
    out.healthy = stats_.healthy && !lost();
    note_group(text_, out);
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
  std::string render(const std::vector<ChatMessage>& messages,
                     const ChatOptions& options) const override {
    return text_.render(messages, options);
  }

  std::vector<LoraInfo> loras() const override { return loras_.list(); }
  void load_lora(LoraInfo info) override {
    std::future<void> there = loras_.add(std::move(info));
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) fail(Code::unsupported, "engine", "stopping, takes no adapters");
      wake_.notify_one();
    }
    there.get();
  }
  bool unload_lora(std::string_view name) override { return loras_.remove(name); }
  std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                   const ChatOptions& options) const override {
    TextRequest request;
    request.messages = messages;
    request.chat = options;
    const std::vector<PictureSquares> pictures =
        text_.pan_and_scan.on ? pictures_of(request) : std::vector<PictureSquares>();
    return text_.encode(request, text_.prompt_of(request), pictures).tokens;
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
    if (kv_events_) kv_events_->close();
  }

 private:
  std::vector<PictureSquares> pictures_of(const TextRequest& request) const {
    const models::PictureEncoder* encoder = text_.model->pictures();
    return read_pictures(request, encoder == nullptr ? 0 : encoder->side(), options_.max_pictures,
                         text_.pan_and_scan);
  }

  // The device, or a rank that holds a part of the model.
  bool lost() const { return watch_.lost() || (text_.group && text_.group->leader().lost()); }

  // mutex_ is held. Neither a client that fills the queue nor cancelled requests keep others out.
  bool has_place_for(const std::string& client) const {
    const auto waiting = static_cast<size_t>(options_.max_waiting);
    const size_t places = waiting + static_cast<size_t>(options_.max_running);
    if (jobs_.size() < places) return true;
    if (jobs_.size() >= places + waiting) return false;
    std::set<std::string_view> clients{client};
    size_t live = 0, own = 0;
    for (const JobPtr& job : jobs_) {
      if (job->cancelled) continue;
      ++live;
      clients.insert(job->client);
      if (job->client == client) ++own;
    }
    return live < places || own < waiting / clients.size();
  }

  std::unique_ptr<DraftModel> make_draft(std::optional<TextModel> model) {
    if (!model) return nullptr;
    check_draft(*model, text_);
    const DraftModelOptions draft_options{.step_tokens = options_.step_tokens,
                                          .vocab = known_tokens(),
                                          .min_p = options_.draft_min_p,
                                          .kv_dtype = options_.kv_dtype};
    return std::make_unique<DraftModel>(std::move(*model), stepper_.pool(), draft_options);
  }

  void prepare() {
    const auto begin = Clock::now();
    WarmUpOptions warm{.context = text_.info.context_length,
                       .chunk = options_.step_tokens,
                       .sequences = options_.max_running,
                       .vocab = known_tokens()};
    warm_up(stepper_, *text_.device, warm);
    warm.draws = false;
    if (drafter_.model()) warm_up(drafter_.model()->stepper(), *text_.device, warm);
    log(LogLevel::info, "warmed up", {{"ms", cat(std::llround(seconds_since(begin) * 1000))}});
  }

  void loop() {
    while (take_in()) {
      drop_cancelled();
      // An error here belongs to no single request.
      guarded([&](const Error& error) { fail_all(error); },
              [&] {
                if (loras_.settle()) stepper_.forget_captured();
                // No request can join a step that is under way.
                if (!stepper_.has_async_step() || scheduler_.running().empty()) let_join();
                step_begin_ = Clock::now();
                stepper_.copy_some();
                find_masks();
                Parts parts = scheduler_.plan();
                const int64_t picture_tokens = scheduler_.picture_tokens(parts);
                drafter_.add_drafts(parts, scheduler_);
                step(parts);
                const TicketPtr seeing = scheduler_.next_picture();
                if (sends_at_once() || seeing || scheduler_.running().empty()) send_texts();
                if (seeing) encode_picture(job_of(seeing), picture_tokens);
              });
    }
    loras_.settle();  // requests may wait for it
  }

  // If the device computes by itself, texts are sent while it is at the next step.
  bool sends_at_once() const { return text_.device->host_accessible(); }

  void send_texts() {
    for (const JobPtr& job : unsent_) job->send();
    unsent_.clear();
  }

  // Waits for work and gives it to the scheduler; finds grammars meanwhile. False: the engine ends.
  bool take_in() {
    std::unique_lock lock(mutex_);
    const auto wanted = [&] { return stopping_ || !jobs_.empty() || loras_.waits(); };
    while (!wake_.wait_for(lock, options_.grammar_rest, wanted)) {
      lock.unlock();
      constraints_.forget();
      lock.lock();
    }
    std::ranges::move(arrived_, std::back_inserter(following_));
    arrived_.clear();
    std::erase_if(following_, [&](const JobPtr& job) {
      if (waits_for_leader(*job)) return false;
      scheduler_.add(job);
      return true;
    });
    return !stopping_ || !jobs_.empty();
  }

  // mutex_ is held. The request that this one follows has not finished its prompt yet.
  bool waits_for_leader(const LlmJob& job) const {
    const std::string& followed = job.request().follows;
    if (followed.empty()) return false;
    const auto found = std::ranges::find(
        jobs_, followed, [](const JobPtr& other) { return other->request().job_id; });
    return found != jobs_.end() && found->get() != &job && !(*found)->prompt_evaluated();
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
                if (pictures_) job.find_pictures(*pictures_);
                ready = true;
              });
      if (!ready) continue;
      if (!scheduler_.join()) break;
      note_scheduler();
      job.start();
    }
  }

  void find_masks() {
    masks_.begin(scheduler_.running(), [&](const TicketPtr& ticket, int64_t& work) {
      LlmJob& job = job_of(ticket);
      guarded([&](const Error& error) { fail_one(job, error); }, [&] { job.find_mask(work); });
      return job.held && scheduler_.runs(job);
    });
  }

  // Encodes a slice of the job's next picture, which takes about as long as this many tokens of a
  // prompt. It is done when the next step is, if the device computes by itself.
  void encode_picture(LlmJob& job, int64_t tokens) {
    const auto begin = Clock::now();
    guarded(
        [&](const Error& error) {
          error.code() == Code::device ? fail_all(error) : fail_one(job, error);
        },
        [&] {
          const std::shared_ptr<SeenPicture> picture = job.sequence.unseen()->picture;
          const int64_t size = text_.model->parameters() - text_.model->pictures()->parameters();
          pictures_->encode(picture, static_cast<double>(tokens) * static_cast<double>(size));
          if (picture->seen()) ++job.pictures_seen;
        });
    note_scheduler();
    const std::scoped_lock lock(mutex_);
    stats_.prompt_seconds += seconds_since(begin);
  }

  // Parts that cannot be evaluated together are evaluated one by one: a request fails alone.
  void step(const Parts& parts) {
    if (parts.empty()) return;
    std::vector<int64_t> cached;
    for (const Scheduler::Part& part : parts) cached.push_back(part.ticket->sequence.cached);
    const auto failed = [&](const Error& error) {
      if (error.code() == Code::device) return fail_all(error);
      Parts again = parts;
      for (size_t i = 0; i < parts.size(); ++i) {
        LlmJob& job = job_of(parts[i].ticket);
        job.sequence.cached = cached[i];
        again[i].count -= std::ssize(job.drop_drafts());
      }
      if (parts.size() > 1) log(LogLevel::warn, "a shared step failed", {{"error", error.what()}});
      for (const Scheduler::Part& part : again) {
        if (!scheduler_.runs(*part.ticket)) continue;  // it ended meanwhile
        if (parts.size() == 1) return fail_one(job_of(part.ticket), error);
        step({part});
      }
    };
    guarded(failed, [&] { run(parts, cached); });
  }

  // cached: of each part, before the step.
  void run(const Parts& parts, std::span<const int64_t> cached) {
    const StepBatch batch = make_step_batch(parts);
    // A step with prompts is not captured, and no async step follows it.
    const bool draws = batch.generated == batch.tokens && text_.device->supports_capture();
    const RowsWanted gathered = gather(batch.asked, known_tokens(), draws);
    const TopLogitsWanted wanted = gathered.top_logits();
    const AsyncStep next = gathered.drawn_on_device() ? async_step_of(batch) : AsyncStep::nothing;
    const TopLogitRows found = evaluate(batch, wanted, next);
    const StepLogits logits{stepper_, found, wanted};
    std::vector<StepOutcome> outcomes;
    outcomes.reserve(batch.asked.size());
    for (const StepBatch::Rows& rows : batch.asked) {
      StepOutcome outcome = take_tokens(rows, logits, masks_);
      if (outcome.error && outcome.error->code() == Code::device) return fail_all(*outcome.error);
      outcomes.push_back(std::move(outcome));
    }
    Scheduler::publish(parts);
    // Counts before the tokens are sent; adds the time of sending afterwards.
    count_step(parts, cached, outcomes);
    for (size_t i = 0; i < outcomes.size(); ++i) settle(batch.asked[i].job, outcomes[i]);
    const auto end = Clock::now();
    add_time(batch, std::chrono::duration<double>(end - std::exchange(step_begin_, end)).count());
  }

  // Padding rows of the output matrix are not tokens.
  int64_t known_tokens() const {
    return std::min<int64_t>(text_.tokenizer->vocab_size(), text_.info.vocab_size);
  }

  // Whether the next step will have the same requests, as far as the engine knows now.
  AsyncStep async_step_of(const StepBatch& batch) {
    const bool same = batch.generated == batch.tokens && !scheduler_.next() &&
                      std::ranges::all_of(batch.asked, [](const StepBatch::Rows& rows) {
                        return !rows.job->drafts_ahead() && rows.job->may_go_on();
                      });
    if (!same) return AsyncStep::nothing;
    const std::scoped_lock lock(mutex_);
    return arrived_.empty() && !cancels_ ? AsyncStep::next_step : AsyncStep::nothing;
  }

  // The largest logits of the sampled rows, which nearly always decide the next token.
  TopLogitRows evaluate(const StepBatch& batch, const TopLogitsWanted& wanted, AsyncStep next) {
    if (wanted.count == 0) {
      stepper_.run(batch.work, batch.rows);
      send_texts();
      return {};
    }
    stepper_.begin(batch.work, batch.rows, wanted, next);
    send_texts();
    return stepper_.top_logits();
  }

  // Ends the request, or queues its text for sending.
  void settle(const JobPtr& job, const StepOutcome& outcome) {
    guarded([&](const Error& error) { fail_one(*job, error); },
            [&] {
              if (outcome.error) return fail_one(*job, *outcome.error);
              if (outcome.reason) return finish(*job, *outcome.reason);
              unsent_.push_back(job);
            });
  }

  void count_step(const Parts& parts, std::span<const int64_t> cached,
                  std::span<const StepOutcome> outcomes) {
    int64_t prompt_tokens = 0;
    uint64_t longest = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      LlmJob& job = job_of(parts[i].ticket);
      prompt_tokens += job.count_prompt_tokens(cached[i]);
      longest = std::max<uint64_t>(longest, job.sequence.tokens.size());
    }
    {
      const std::scoped_lock lock(mutex_);
      ++stats_.steps;
      stats_.step_requests += parts.size();
      stats_.longest_text = std::max(stats_.longest_text, longest);
      stats_.prompt_tokens += static_cast<uint64_t>(prompt_tokens);
      count_tokens(outcomes, stats_);
    }
    note_scheduler();
  }

  void add_time(const StepBatch& batch, double seconds) {
    scheduler_.note_time(batch.generated, batch.tokens - batch.generated, seconds);
    const double generation = double(batch.generated) / double(batch.tokens);
    const std::scoped_lock lock(mutex_);
    stats_.decode_seconds += seconds * generation;
    stats_.prompt_seconds += seconds * (1 - generation);
  }

  void note_scheduler() {
    if (kv_events_) kv_events_->add(block_events_.take());
    const SchedulerCounts& counts = scheduler_.counts();
    const std::scoped_lock lock(mutex_);
    stats_.pictures = pictures_ ? static_cast<uint64_t>(pictures_->encoded()) : 0;
    stats_.running = static_cast<int32_t>(scheduler_.running().size());
    stats_.preemptions = counts.preemptions;
    stats_.prefix_queries = counts.prefix_queries;
    stats_.prefix_hits = counts.prefix_hits;
    note_blocks(stepper_.pool(), stats_);
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

  // No running request can go on. The engine and waiting requests can, unless the device is lost.
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
      const std::scoped_lock lock(mutex_);
      stats_.healthy = false;  // before the events
      jobs = jobs_;
    }
    for (const JobPtr& job : jobs) fail_one(*job, error);
  }

  // Before the last event: a client that has seen it finds the request counted and its blocks free.
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
  const std::shared_ptr<KvEventLog> kv_events_;  // null: nobody asked for events
  BlockEvents block_events_;                     // engine thread only
  Stepper stepper_;
  LoraCache loras_;
  Drafter drafter_;                       // engine thread only
  Scheduler scheduler_;                   // engine thread only
  Clock::time_point step_begin_;          // engine thread only
  MaskTurns masks_;                       // engine thread only
  std::optional<PictureCache> pictures_;  // engine thread only
  std::deque<JobPtr> following_;          // engine thread only: the scheduler has not got them yet
  std::vector<JobPtr> unsent_;            // engine thread only: jobs with text to send
  std::atomic<bool> lost_ = false;
  DeviceWatch watch_{*text_.device};

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::deque<JobPtr> jobs_;     // all without a last event yet
  std::deque<JobPtr> arrived_;  // of these, those that the scheduler has not got yet
  bool cancels_ = false;        // a request was cancelled since the engine looked
  EngineStats stats_;
  bool stopping_ = false;

  std::mutex join_mutex_;  // lets one stop() at a time join
  std::thread thread_;
};

}  // namespace

std::unique_ptr<TextEngine> make_llm_engine(TextModel model, const LlmOptions& options,
                                            std::optional<TextModel> draft) {
  return std::make_unique<LlmEngine>(std::move(model), options, std::move(draft));
}

}  // namespace rbee::engine
