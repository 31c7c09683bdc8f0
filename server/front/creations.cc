#include "server/front/creations.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "rbee/core/log.h"
#include "server/apis/ollama/response.h"
#include "server/front/file_answers.h"
#include "server/http/mailbox.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kMostRuns = 32;  // at once
constexpr size_t kMostLong = 2;   // of these, that fetch or quantize
constexpr std::string_view kStopping = "the server is stopping";
constexpr std::chrono::seconds kPatience{2};  // with threads whose work was cancelled

std::string line_of(const CreateStep& step) {
  json line = {{"status", step.status}};
  if (!step.digest.empty()) line["digest"] = step.digest;
  if (step.total > 0) line["total"] = step.total;
  if (step.done > 0) line["completed"] = step.done;
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

Response lines_response() {
  Response out = json_response(200, "");
  out.content_type = kLineStreamType;
  return out;
}

}  // namespace

// One request. Its answer has a status of its own until long work begins; from then on it is a
// stream, if the client takes one.
struct Creations::Run {
  OllamaCreate body;
  std::atomic<bool> cancelled = false;
  std::mutex mutex;  // guards what follows
  bool over = false;
  std::shared_ptr<DelayedResponse> later;
  std::shared_ptr<EventQueue> events;
  std::string lines;  // until there are `events`

  void say(const CreateStep& step) {
    const std::scoped_lock lock(mutex);
    if (events) {
      events->push_data(line_of(step));
    } else {
      lines += cat(line_of(step), "\n");
    }
  }

  static void begin(const std::shared_ptr<Run>& run) {
    const std::scoped_lock lock(run->mutex);
    if (run->over || run->events || !run->body.stream) return;
    run->events = std::make_shared<EventQueue>(leaver(run));
    run->events->set_form(StreamForm::lines);
    run->events->push_text(std::exchange(run->lines, {}));
    Response out = lines_response();
    out.events = run->events;
    run->later->set(std::move(out));
  }

  void end(Response answer) {
    const std::scoped_lock lock(mutex);
    if (std::exchange(over, true)) return;
    if (events) {
      events->push_data(answer.body);
      return events->close();
    }
    if (answer.status == 200 && body.stream) {
      Response whole = lines_response();
      whole.body = cat(lines, answer.body, "\n");
      return later->set(std::move(whole));
    }
    later->set(std::move(answer));
  }

  static std::function<void()> leaver(const std::shared_ptr<Run>& run) {
    return [weak = std::weak_ptr(run)] {
      if (const std::shared_ptr<Run> left = weak.lock()) left->cancelled = true;
    };
  }
};

struct Creations::Shared {
  std::shared_ptr<ModelStore> files;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  MadeModel made;  // null: the front ends
  std::list<std::shared_ptr<Run>> runs;
  size_t long_runs = 0;
  size_t in_made = 0;  // calls of `made`
};

Creations::Creations(std::shared_ptr<ModelStore> files, MadeModel made)
    : shared_(std::make_shared<Shared>()) {
  shared_->files = std::move(files);
  shared_->made = std::move(made);
}

Creations::~Creations() {
  stop();
}

void Creations::stop() {
  std::unique_lock lock(shared_->mutex);
  shared_->made = nullptr;
  for (const std::shared_ptr<Run>& run : shared_->runs) {
    run->cancelled = true;
    run->end(plain_error(503, kStopping));
  }
  shared_->changed.wait(lock, [&] { return shared_->in_made == 0; });  // it sees the end soon
  shared_->changed.wait_for(lock, kPatience, [&] { return shared_->runs.empty(); });
}

Response Creations::create(const OllamaCreate& body) {
  const auto run = std::make_shared<Run>();
  run->body = body;
  Response out;
  out.later = run->later = std::make_shared<DelayedResponse>(Run::leaver(run));
  const std::scoped_lock lock(shared_->mutex);
  if (!shared_->made) return plain_error(503, kStopping);
  if (shared_->runs.size() >= kMostRuns)
    return plain_error(429, "too many models are made at once");
  try {
    std::thread([shared = shared_, run] { work(shared, run); }).detach();
  } catch (const std::system_error&) {
    return plain_error(503, "no more threads can be started");
  }
  shared_->runs.push_back(run);
  return out;
}

// The answer, or the last line of its stream.
Response Creations::make(Shared& shared, const std::shared_ptr<Run>& run) {
  const CancelScope scope(run->cancelled);
  bool is_long = false;
  const CreateWatch watch{
      .step = [&](const CreateStep& step) { run->say(step); },
      .begin =
          [&] {
            const std::scoped_lock lock(shared.mutex);
            if (is_long) return;
            if (shared.long_runs >= kMostLong) {
              throw FilesBusy("too many models are fetched and quantized at once: try again");
            }
            is_long = true;
            ++shared.long_runs;
            Run::begin(run);
          }};
  Response answer = json_response(200, line_of({.status = "success"}));
  const bool good =
      tell_problems([&] { shared.files->create(run->body, watch); }, answer, run->body.record.from);
  MadeModel made;
  {
    const std::scoped_lock lock(shared.mutex);
    if (is_long) --shared.long_runs;
    if (!good) return answer;
    made = shared.made;
    if (!made) return plain_error(503, kStopping);
    ++shared.in_made;
  }
  const bool dropped = made(run->body.record.name);
  {
    const std::scoped_lock lock(shared.mutex);
    --shared.in_made;
    shared.changed.notify_all();
  }
  if (!dropped) return plain_error(503, kStopping);
  log(LogLevel::info, "a client made a model", {{"model", printable(run->body.record.name)}});
  return answer;
}

void Creations::work(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Run>& run) {
  Response answer = make(*shared, run);
  {
    const std::scoped_lock lock(shared->mutex);
    std::erase(shared->runs, run);
    shared->changed.notify_all();
  }
  run->end(std::move(answer));
}

}  // namespace rbee::server
