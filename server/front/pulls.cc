#include "server/front/pulls.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "server/apis/ollama/names.h"
#include "server/apis/ollama/response.h"
#include "server/front/paths.h"
#include "server/front/routing.h"
#include "server/http/mailbox.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kMostPulls = 8;  // at once
constexpr std::string_view kStopping = "the server is stopping";
constexpr size_t kShownDigits = 12;
constexpr std::string_view kSum = "sha256:";
constexpr std::string_view kMissing = "pull model manifest: file does not exist";

std::string status_line(std::string_view status) {
  return json{{"status", status}}.dump();
}

// Ollama's clients draw a bar for each digest.
std::string part_line(const PulledFile& part) {
  json line = {{"status", pulling_status(part)}};
  if (part.digest.empty()) return line.dump();
  line["digest"] = part.digest;
  line["total"] = part.total;
  if (part.done > 0) line["completed"] = part.done;
  return line.dump();
}

// In Ollama's words for a model that there is not.
std::string problem_of(const Error& error) {
  if (error.code() != Code::not_found) return without_folders(valid_text(error.what()));
  return cat(kMissing, ": ", without_folders(valid_text(std::string(error.message()))));
}

// A client that waits: one of both.
struct Listener {
  std::shared_ptr<EventQueue> events;
  std::shared_ptr<DelayedResponse> later;

  bool is(const Mailbox* mailbox) const {
    return mailbox != nullptr && (mailbox == events.get() || mailbox == later.get());
  }
};

}  // namespace

std::string pulling_status(const PulledFile& part) {
  return cat("pulling ", part.digest.empty() ? valid_text(part.name)
                                             : part.digest.substr(kSum.size(), kShownDigits));
}

struct Pulls::Run {
  std::string name;
  std::atomic<bool> cancelled = false;
  std::mutex mutex;  // guards what follows
  bool over = false;
  std::vector<Listener> listeners;
  std::vector<std::pair<std::string, std::string>> parts;  // digest or name, and its last line

  void say(const std::string& line) {
    const std::scoped_lock lock(mutex);
    for (const Listener& one : listeners) {
      if (one.events) one.events->push_data(line);
    }
  }

  void note(const PulledFile& part) {
    const std::string line = part_line(part);
    const std::string& key = part.digest.empty() ? part.name : part.digest;
    {
      const std::scoped_lock lock(mutex);
      const auto known = std::ranges::find(parts, key, &std::pair<std::string, std::string>::first);
      if (known == parts.end()) {
        parts.emplace_back(key, line);
      } else if (known->second == line) {
        return;
      } else {
        known->second = line;
      }
    }
    say(line);
  }

  // line: the last one of a stream; what clients without one get has the status too.
  void end(int status, const std::string& line) {
    const std::scoped_lock lock(mutex);
    over = true;
    for (const Listener& one : std::exchange(listeners, {})) {
      if (one.later) one.later->set(json_response(status, line));
      if (!one.events) continue;
      one.events->push_data(line);
      one.events->close();
    }
  }

  void leave(const Mailbox* mailbox) {
    const std::scoped_lock lock(mutex);
    std::erase_if(listeners, [&](const Listener& one) { return one.is(mailbox); });
    if (listeners.empty()) cancelled = true;
  }

  // Nothing if it is over, or about to be.
  static std::optional<Response> join(const std::shared_ptr<Run>& run, bool stream) {
    const std::scoped_lock lock(run->mutex);
    if (run->over || run->cancelled) return std::nullopt;
    // The callback names its mailbox only to compare.
    const auto place = std::make_shared<const Mailbox*>(nullptr);
    const auto leaver = [weak = std::weak_ptr(run), place] {
      if (const std::shared_ptr<Run> left = weak.lock()) left->leave(*place);
    };
    Response out = json_response(200, "");
    Listener one;
    if (stream) {
      out.content_type = kLineStreamType;
      out.events = one.events = std::make_shared<EventQueue>(leaver);
      *place = one.events.get();
      one.events->set_form(StreamForm::lines);
      one.events->push_data(status_line("pulling manifest"));
      for (const auto& [key, line] : run->parts) one.events->push_data(line);
    } else {
      out.later = one.later = std::make_shared<DelayedResponse>(leaver);
      *place = one.later.get();
    }
    run->listeners.push_back(std::move(one));
    return out;
  }
};

struct Pulls::Shared {
  std::shared_ptr<ModelStore> files;
  std::mutex mutex;    // guards what follows
  PulledModel pulled;  // null: the front ends
  std::map<std::string, std::shared_ptr<Run>> runs;
};

Pulls::Pulls(std::shared_ptr<ModelStore> files, PulledModel pulled)
    : shared_(std::make_shared<Shared>()) {
  shared_->files = std::move(files);
  shared_->pulled = std::move(pulled);
}

Pulls::~Pulls() {
  stop();
}

void Pulls::stop() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->pulled = nullptr;
  for (const auto& [name, run] : shared_->runs) {
    run->cancelled = true;
    run->end(503, ollama_error_json(kStopping));  // its thread may wait for a server
  }
}

Response Pulls::pull(const std::string& name, bool stream) {
  const std::string key = plain_model_name(name);
  const std::scoped_lock lock(shared_->mutex);
  if (!shared_->pulled) return json_response(503, ollama_error_json(kStopping));
  if (const auto known = shared_->runs.find(key); known != shared_->runs.end()) {
    if (std::optional<Response> joined = Run::join(known->second, stream)) return *joined;
  } else if (shared_->runs.size() >= kMostPulls) {
    return json_response(429, ollama_error_json("too many models are pulled at once"));
  }
  const auto fresh = std::make_shared<Run>();
  fresh->name = name;
  Response out = *Run::join(fresh, stream);
  try {
    std::thread([shared = shared_, fresh] { run(shared, fresh); }).detach();
  } catch (const std::system_error&) {
    return json_response(503, ollama_error_json("no more threads can be started"));
  }
  shared_->runs[key] = fresh;
  return out;
}

// What a fetch came to: the last line of its streams, and the status of its other answers.
struct Pulls::Result {
  int status = 200;
  std::string line = status_line("success");
};

Pulls::Result Pulls::fetch(Shared& shared, Run& run) {
  const CancelScope scope(run.cancelled);
  const PullWatch watch{.part = [&](const PulledFile& part) { run.note(part); },
                        .fetched = [&] { run.say(status_line("verifying sha256 digest")); }};
  try {
    const std::optional<ServedModel> model = shared.files->pull(run.name, watch);
    if (!model) return {500, ollama_error_json(kMissing)};
    run.say(status_line("writing manifest"));
    const std::scoped_lock lock(shared.mutex);
    if (shared.pulled) shared.pulled(*model, run.name);
    return {};
  } catch (const Error& error) {
    const bool cancelled = error.code() == Code::cancelled;
    log(cancelled ? LogLevel::info : LogLevel::warn, "a pull ended early",
        {{"model", printable(run.name)}, {"error", printable(error.what())}});
    return {500, ollama_error_json(problem_of(error))};
  } catch (const std::exception& error) {
    return {500, ollama_error_json(without_folders(valid_text(error.what())))};
  }
}

void Pulls::run(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Run>& run) {
  const Result result = fetch(*shared, *run);
  {
    const std::scoped_lock lock(shared->mutex);
    std::erase_if(shared->runs, [&](const auto& entry) { return entry.second == run; });
  }
  run->end(result.status, result.line);
}

}  // namespace rbee::server
