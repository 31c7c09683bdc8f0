#include "rbee/engine/embedding/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "rbee/core/log.h"
#include "rbee/engine/common/device_watch.h"

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;

// A CPU's pass, in seconds: newcomers wait for its end. Fewer tokens than the least save little.
constexpr double kPassSeconds = 0.05;
constexpr int64_t kLeastPass = 128;
constexpr int64_t kFirstPass = 512;  // before any pass was timed
constexpr double kNewest = 0.2;      // of the mean of tokens in a second
// Reads texts for a pass for this long, but at least one text.
constexpr std::chrono::milliseconds kReading{10};
// Reading this many bytes counts as evaluating a token, if nothing is evaluated.
constexpr int64_t kBytesOfToken = 32;

// One request.
struct Task {
  EmbeddingRequest request;
  std::shared_ptr<EmbeddingSink> sink;
  std::vector<EmbeddingSource::Encoded> texts{};  // the first inputs that have been read
  EmbeddingSource::Query query{};                 // of the pair read last
  SharedText asked{}, kept_query{};               // its query before and after truncation
  EmbeddingResult result{};
  size_t sent = 0;  // texts that are in a pass, or have been
  size_t done = 0;
};
using TaskPtr = std::shared_ptr<Task>;

// One text of a pass.
struct Part {
  TaskPtr task;
  size_t index;

  const EmbeddingSource::Encoded& text() const { return task->texts[index]; }
};

int64_t bytes_of(const EmbeddingInput& input) {
  if (const auto* text = std::get_if<std::string>(&input)) return std::ssize(*text);
  if (const auto* pair = std::get_if<TextPair>(&input)) {
    return std::ssize(pair->document) + std::ssize(pair->query.text());
  }
  return std::ssize(std::get<std::vector<int32_t>>(input));
}

void normalise(std::vector<float>& vector) {
  double squares = 0;
  for (const float value : vector) squares += double{value} * double{value};
  if (squares == 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(double{value} * scale);
}

class Embedder final : public EmbeddingEngine {
 public:
  Embedder(EmbeddingSource source, const EmbeddingOptions& options)
      : source_(std::move(source)), options_(options) {
    check(options.pass_tokens > 0, "pass_tokens", options.pass_tokens, ", wanted at least 1");
    check(options.max_waiting > 0, "max_waiting", options.max_waiting, ", wanted at least 1");
    warm_up();
    thread_ = std::thread([this] { loop(); });
  }
  ~Embedder() override { Embedder::stop(); }
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  const EmbeddingInfo& info() const override { return source_.info; }

  void submit(EmbeddingRequest request, std::shared_ptr<EmbeddingSink> sink) override {
    validate(request);
    {
      const std::scoped_lock lock(mutex_);
      if (!stats_.healthy || watch_.lost()) fail(Code::device, "embed", "the device is lost");
      if (stopping_) fail(Code::unsupported, "embed", "the engine is stopping");
      if (std::ssize(tasks_) >= options_.max_waiting) {
        fail(Code::out_of_memory, "embed", options_.max_waiting, " requests wait already");
      }
      tasks_.push_back(std::make_shared<Task>(Task{std::move(request), std::move(sink)}));
    }
    wake_.notify_all();
  }

  bool cancel(const std::string& job_id) override {
    TaskPtr task;
    {
      const std::scoped_lock lock(mutex_);
      const auto at = std::ranges::find(tasks_, job_id,
                                        [](const TaskPtr& other) { return other->request.job_id; });
      if (at == tasks_.end()) return false;
      task = *at;
      tasks_.erase(at);
      ++stats_.requests_cancelled;
    }
    task->sink->on_failed({Code::cancelled, "the request was cancelled"});
    return true;
  }

  EngineStats stats() const override {
    EngineStats out;
    {
      const std::scoped_lock lock(mutex_);
      out = stats_;
      const auto all = static_cast<int32_t>(tasks_.size());
      out.running = std::min(running_, all);
      out.waiting = all - out.running;
    }
    const MemoryInfo memory = out.healthy ? watch_.memory() : MemoryInfo{};
    out.healthy = out.healthy && !watch_.lost();
    out.device_memory_bytes = static_cast<int64_t>(memory.total);
    out.device_memory_free_bytes = static_cast<int64_t>(memory.free);
    return out;
  }

  std::vector<int32_t> tokenize(std::string_view text,
                                const TokenizeOptions& options) const override {
    return source_.tokenizer->encode(
        text, {.add_special = options.add_special, .parse_special = options.parse_special});
  }
  std::string detokenize(const std::vector<int32_t>& ids) const override {
    return source_.tokenizer->decode(ids, true);
  }
  std::string token_bytes(int32_t id) const override { return source_.tokenizer->piece(id, true); }
  std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                   const ChatOptions& options, bool add_special) const override {
    return source_.chat_tokens(messages, options, add_special);
  }

  void stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    const std::scoped_lock joining(join_mutex_);
    if (thread_.joinable()) thread_.join();
    fail_all({Code::cancelled, "the engine is stopping"});
  }

 private:
  // Loads kernels; a device that cannot run the model reports it before any request waits.
  void warm_up() const {
    constexpr int64_t kShort = 4, kLong = 512;  // tokens, for which there are different kernels
    const auto begin = Clock::now();
    const int64_t most = std::min<int64_t>(options_.pass_tokens, source_.info.model.context_length);
    for (const int64_t tokens : {std::min(kLong, most), std::min(kShort, most)}) {
      if (tokens > kShort && source_.device->host_accessible()) continue;  // it would take its time
      const std::vector<int32_t> zeros(static_cast<size_t>(tokens));
      evaluate({.ids = zeros, .segments = zeros, .lengths = {tokens}});
    }
    const std::chrono::duration<double, std::milli> spent = Clock::now() - begin;
    log(LogLevel::info, "warmed up", {{"ms", cat(std::llround(spent.count()))}});
  }

  // The vectors or scores of the texts, in order.
  std::vector<float> evaluate(const models::TextBatch& batch) const {
    models::EmbeddingModel& model = *source_.model;
    const Tensor made =
        source_.info.ranks ? model.rank(batch) : model.embed(batch, source_.pooling);
    return made.to_host<float>();
  }

  void validate(const EmbeddingRequest& request) const {
    check(!request.inputs.empty(), "input", "is empty");
    const EmbeddingInfo& info = source_.info;
    check(request.dimensions >= 0 && request.dimensions <= info.dimensions, "dimensions",
          request.dimensions, ", wanted from 1 to ", info.dimensions);
    const int32_t most = info.model.context_length;
    check(request.truncate.value_or(0) >= -1 && request.truncate.value_or(0) <= most,
          "truncate_prompt_tokens", request.truncate.value_or(0), ", wanted from -1 to ", most,
          ". Please request a smaller truncation size.");
    check(request.query_tokens >= 0, "max_tokens_per_query", request.query_tokens, " is below 0");
    check(request.document_tokens >= 0, "max_tokens_per_doc", request.document_tokens,
          " is below 0");
    check(!request.alone || info.classifies, "task", info.model.id, " classifies no texts");
    check_prompt(request);
    for (const EmbeddingInput& input : request.inputs) {
      const bool pair = std::holds_alternative<TextPair>(input);
      if (pair && !info.instructs && !std::get<TextPair>(input).instruction.text().empty()) {
        fail(Code::invalid_argument, "instruction", info.model.id, " reads none");
      }
      if (pair == (info.ranks && !request.alone)) continue;
      fail(Code::invalid_argument, "model", info.model.id,
           pair ? " makes embeddings; it ranks no documents"
                : " ranks documents; it makes no embeddings");
    }
  }

  void check_prompt(const EmbeddingRequest& request) const {
    if (!request.prompt_name) return;
    const std::vector<std::string>& known = source_.info.prompts;
    if (std::ranges::find(known, *request.prompt_name) == known.end()) {
      std::string list;
      for (const std::string& name : known) list += cat(list.empty() ? "" : ", ", name);
      fail(Code::invalid_argument, "prompt_name", "\"", *request.prompt_name,
           known.empty() ? "\"; the model's files have no prompts" : "\", wanted one of ", list);
    }
    for (const EmbeddingInput& input : request.inputs) {
      check(std::holds_alternative<std::string>(input), "prompt_name",
            "stands before texts; the input has tokens");
    }
  }

  void loop() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        running_ = 0;
        wake_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
        if (stopping_) return;
      }
      const std::vector<Part> parts = next_pass();
      if (!parts.empty()) run(parts);
    }
  }

  // Reduces a pair's texts to the tokens to keep; a query that pairs share stays shared.
  void shorten(Task& task, EmbeddingInput& input) const {
    const EmbeddingRequest& request = task.request;
    auto* pair = std::get_if<TextPair>(&input);
    if (pair == nullptr) return;
    if (request.document_tokens > 0) {
      pair->document = source_.shortened(pair->document, request.document_tokens);
    }
    if (request.query_tokens == 0) return;
    if (&pair->query.text() != &task.asked.text()) {
      task.asked = pair->query;
      task.kept_query = source_.shortened(task.asked.text(), request.query_tokens);
    }
    pair->query = task.kept_query;
  }

  // Reads the task's next input.
  void read_next(Task& task) const {
    EmbeddingRequest& request = task.request;
    const EmbeddingSource::Kept kept{
        .tokens = request.truncate, .last = request.keeps_last, .special = request.add_special};
    EmbeddingInput& input = request.inputs[task.texts.size()];
    shorten(task, input);
    task.texts.push_back(
        source_.encode(source_.prompted(input, request.prompt_name), kept, task.query));
    task.result.tokens += std::ssize(task.texts.back().ids);
    task.result.vectors.resize(request.inputs.size());
  }

  // The oldest request with texts to send of the client with the fewest tokens so far; null: none.
  // A new client starts with the fewest.
  TaskPtr next_task() {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, TaskPtr> oldest;
    for (const TaskPtr& task : tasks_) {
      if (task->sent < task->request.inputs.size()) oldest.try_emplace(task->request.client, task);
    }
    if (oldest.empty()) return nullptr;
    std::erase_if(had_, [&](const auto& had) { return !oldest.contains(had.first); });
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int64_t least =
        had_.empty() ? 0 : std::min_element(had_.begin(), had_.end(), less)->second;
    for (const auto& [client, task] : oldest) had_.try_emplace(client, least - 1);
    return oldest.at(std::min_element(had_.begin(), had_.end(), less)->first);
  }

  // False if its next text cannot be read, which fails the request.
  bool has_read_next(const TaskPtr& task) {
    if (task->sent < task->texts.size()) return true;
    bool read = true;
    guarded(
        [&](const Failed& failed) {
          read = false;
          had_[task->request.client] +=
              bytes_of(task->request.inputs[task->texts.size()]) / kBytesOfToken + 1;
          fail_one(task, failed);
        },
        [&] { read_next(*task); });
    return read && task->sent < task->texts.size();
  }

  int64_t tokens_of_pass() const {
    if (!source_.device->host_accessible()) return options_.pass_tokens;
    const int64_t fit = rate_ > 0 ? std::llround(std::min(rate_ * kPassSeconds, 1e9)) : kFirstPass;
    return std::min(std::max(fit, kLeastPass), options_.pass_tokens);
  }

  // Clients give a text each in turn. The longest go first: neighbours of one length are one
  // operation.
  std::vector<Part> next_pass() {
    std::vector<Part> parts;
    const int64_t most = tokens_of_pass();
    const auto begin = Clock::now();
    for (int64_t tokens = 0; const TaskPtr task = next_task();) {
      if (!has_read_next(task)) continue;
      const int64_t more = std::ssize(task->texts[task->sent].ids);
      if (!parts.empty() && tokens + more > most) break;
      parts.push_back({task, task->sent++});
      tokens += more;
      had_[task->request.client] += more;
      if (Clock::now() - begin > kReading) break;
    }
    note_running(parts);
    std::ranges::stable_sort(parts, [](const Part& a, const Part& b) {
      return a.text().ids.size() > b.text().ids.size();
    });
    return parts;
  }

  void note_running(const std::vector<Part>& parts) {
    std::set<const Task*> tasks;
    for (const Part& part : parts) tasks.insert(part.task.get());
    const std::scoped_lock lock(mutex_);
    running_ = static_cast<int32_t>(tasks.size());
  }

  // Texts that cannot be evaluated together are evaluated one by one: a request fails alone.
  void run(const std::vector<Part>& parts) {
    std::vector<TaskPtr> tasks;
    std::vector<size_t> done;
    for (const Part& part : parts) {
      if (std::ranges::find(tasks, part.task) != tasks.end()) continue;
      tasks.push_back(part.task);
      done.push_back(part.task->done);
    }
    const auto failed = [&](const Failed& why) {
      if (tasks.size() == 1) return fail_one(tasks[0], why);
      log(LogLevel::warn, "a shared pass failed", {{"error", why.message}});
      for (size_t i = 0; i < tasks.size(); ++i) {
        std::vector<Part> own;
        std::ranges::copy_if(parts, std::back_inserter(own),
                             [&](const Part& part) { return part.task == tasks[i]; });
        tasks[i]->done = done[i];
        if (is_there(tasks[i])) run(own);
      }
    };
    guarded(failed, [&] {
      const auto begin = Clock::now();
      models::TextBatch batch;
      for (const Part& part : parts) {
        const EmbeddingSource::Encoded& text = part.text();
        batch.ids.insert(batch.ids.end(), text.ids.begin(), text.ids.end());
        batch.segments.insert(batch.segments.end(), text.segments.begin(), text.segments.end());
        batch.lengths.push_back(std::ssize(text.ids));
      }
      const std::vector<float> values = evaluate(batch);
      const size_t width = source_.info.ranks ? 1 : static_cast<size_t>(source_.info.dimensions);
      for (size_t i = 0; i < parts.size(); ++i) {
        give(parts[i], std::span(values).subspan(i * width, width));
      }
      count(std::ssize(batch.ids), std::chrono::duration<double>(Clock::now() - begin).count());
    });
    for (const TaskPtr& task : tasks) {
      if (task->done == task->request.inputs.size()) finish(task);
    }
  }

  void give(const Part& part, std::span<const float> values) const {
    const EmbeddingRequest& request = part.task->request;
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
      fail(Code::internal, source_.info.ranks ? "rank" : "embed",
           "the model gave values that are not finite");
    }
    std::vector<float> vector(values.begin(), values.end());
    if (source_.info.ranks) {
      if (request.probability && source_.probability) vector[0] = 1 / (1 + std::exp(-vector[0]));
    } else {
      if (request.dimensions > 0) vector.resize(static_cast<size_t>(request.dimensions));
      if (request.normalise.value_or(source_.info.normalises)) normalise(vector);
    }
    part.task->result.vectors[part.index] = std::move(vector);
    ++part.task->done;
  }

  void count(int64_t tokens, double seconds) {
    if (tokens >= kLeastPass / 2 && seconds > 0) {
      const double now = static_cast<double>(tokens) / seconds;
      rate_ += (rate_ > 0 ? kNewest : 1) * (now - rate_);
    }
    const std::scoped_lock lock(mutex_);
    ++stats_.steps;
    stats_.prompt_tokens += static_cast<uint64_t>(tokens);
    stats_.prompt_seconds += seconds;
  }

  // Runs the work and passes what it throws to `failed`; a lost device ends the engine.
  template <typename OnFailed, typename Work>
  void guarded(const OnFailed& failed, const Work& work) {
    std::optional<Failed> why;
    try {
      work();
    } catch (const Error& error) {
      why = Failed{error.code(), error.what()};
    } catch (const std::bad_alloc&) {
      why = Failed{Code::out_of_memory, "the host has no memory left"};
    } catch (const std::exception& error) {
      why = Failed{Code::internal, error.what()};
    }
    if (!why) return;
    if (why->code != Code::device) return failed(*why);
    log(LogLevel::error, "the device is lost", {{"error", why->message}});
    {
      const std::scoped_lock lock(mutex_);
      stats_.healthy = false;
    }
    fail_all(*why);
  }

  bool is_there(const TaskPtr& task) const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::find(tasks_, task) != tasks_.end();
  }

  // False if it was cancelled meanwhile.
  bool remove(const TaskPtr& task, uint64_t EngineStats::* counter) {
    const std::scoped_lock lock(mutex_);
    if (std::erase(tasks_, task) == 0) return false;
    ++(stats_.*counter);
    return true;
  }
  void finish(const TaskPtr& task) {
    if (remove(task, &EngineStats::requests_finished)) {
      task->sink->on_embedded(std::move(task->result));
    }
  }
  void fail_one(const TaskPtr& task, const Failed& failed) {
    if (remove(task, &EngineStats::requests_failed)) task->sink->on_failed(failed);
  }
  void fail_all(const Failed& failed) {
    std::deque<TaskPtr> tasks;
    {
      const std::scoped_lock lock(mutex_);
      tasks = tasks_;
    }
    for (const TaskPtr& task : tasks) fail_one(task, failed);
  }

  const EmbeddingSource source_;
  const EmbeddingOptions options_;
  const DeviceWatch watch_{*source_.device};
  // Only for the engine thread.
  std::map<std::string, int64_t> had_;  // tokens of each client that has texts to send
  double rate_ = 0;                     // tokens of passes in a second; 0: not known

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::deque<TaskPtr> tasks_;  // all that are not done; only the engine thread uses their insides
  int32_t running_ = 0;        // of these, in the pass
  EngineStats stats_;
  bool stopping_ = false;

  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<EmbeddingEngine> make_embedding_engine(EmbeddingSource source,
                                                       const EmbeddingOptions& options) {
  return std::make_unique<Embedder>(std::move(source), options);
}

}  // namespace rbee::engine
