#include "server/front/replica.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr int kWrongUsage = 2;  // a worker's exit status for wrong flags
constexpr int kLost = 3;        // for a failed device or a truncated mapped file
constexpr int kMostSilent = 3;  // probes without an answer before the worker is killed
// The last line of a worker with wrong flags; the line before says what is wrong.
constexpr std::string_view kHint = "Run with --help";
constexpr size_t kShownLine = 500;  // bytes of a worker's output outside its log

// Empty if there is no such text.
std::string text_of(const json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

template <typename T>
void read_number(const json& record, const char* key, T& out) {
  const std::string text = text_of(record, key);
  std::from_chars(text.data(), text.data() + text.size(), out);
}

LogLevel level_of(std::string_view name) {
  if (name == "ERROR") return LogLevel::error;
  if (name == "WARN") return LogLevel::warn;
  return name == "DEBUG" || name == "TRACE" ? LogLevel::debug : LogLevel::info;
}

// Writes a worker's record into the front's log, with its other fields as JSON.
void pass_on(const std::string& worker, json record) {
  const std::string message = text_of(record, "message");
  // The front logs each request itself.
  const LogLevel level =
      message == "request" ? LogLevel::debug : level_of(text_of(record, "level"));
  for (const char* field : {"message", "level", "timestamp"}) record.erase(field);
  log(level, "a worker says", {{"worker", worker}, {"text", message}, {"fields", record.dump()}});
}

// Logs a line that is not a record; it may hold any bytes.
std::string printable(std::string_view line) {
  std::string text(line.substr(0, kShownLine));
  std::replace_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

}  // namespace

std::string_view state_name(ReplicaState state) {
  switch (state) {
    case ReplicaState::unloaded:
      return "unloaded";
    case ReplicaState::starting:
      return "starting";
    case ReplicaState::ready:
      return "ready";
    case ReplicaState::ending:
      return "ending";
    case ReplicaState::paused:
      return "paused";
    default:
      return "given_up";
  }
}

Replica::Replica(boost::asio::io_context& io, const FrontConfig& config, ReplicaOptions options,
                 std::function<void()> on_change)
    : io_(io),
      config_(config),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      timer_(io),
      health_timer_(io) {
  if (options_.on_demand) state_ = ReplicaState::unloaded;
}

void Replica::start() {
  if (!options_.on_demand) run();
}

void Replica::load() {
  further_at_ = steady_clock::now();
  run();
}

void Replica::run() {
  ++runs_;
  said_ready_ = was_ready_ = false;
  progress_ = nullptr;
  state_ = ReplicaState::starting;
  std::vector<std::string> command = options_.command;
  command.insert(command.end(),
                 {"--worker-id", options_.name, "--host", "127.0.0.1", "--port", "0"});
  last_line_.clear();
  try {
    child_ = Child::start(io_, {.command = std::move(command),
                                .environment = options_.environment,
                                .on_line = [this](std::string_view line) { on_line(line); },
                                .on_exit = [this](int status) { on_exit(status); }});
  } catch (const Error& error) {
    last_line_ = error.what();
    return on_exit(127);
  }
  log(LogLevel::info, "worker started", {{"worker", name()}, {"pid", cat(pid())}});
  change(ReplicaState::starting);
}

void Replica::unload(std::chrono::milliseconds patience) {
  if (!child_ || stopping_ || std::exchange(unloading_, true)) return;
  health_timer_.cancel();
  if (probe_) probe_->cancel();
  probe_.reset();
  log(LogLevel::info, "the model is unloaded", {{"worker", name()}});
  child_->signal(SIGTERM);
  after(patience, &Replica::kill_now);
  change(ReplicaState::ending);
}

void Replica::stop(std::chrono::milliseconds patience) {
  stopping_ = true;
  health_timer_.cancel();
  timer_.cancel();
  if (probe_) probe_->cancel();
  if (!child_) return change(ReplicaState::given_up);
  child_->signal(SIGTERM);
  after(patience, &Replica::kill_now);
}

void Replica::kill_now() {
  if (child_) child_->signal(SIGKILL);
}

void Replica::after(std::chrono::milliseconds pause, void (Replica::*step)()) {
  timer_.expires_after(pause);
  timer_.async_wait([self = shared_from_this(), step](const boost::system::error_code& error) {
    if (!error) ((*self).*step)();
  });
}

void Replica::on_line(std::string_view line) {
  json record = json::parse(line, nullptr, false);
  if (!record.is_object()) {
    const std::string text = printable(line);
    const bool says_why = last_line_.empty() || !text.starts_with(kHint);
    if (says_why) last_line_ = text;
    return log(LogLevel::warn, "a worker says", {{"worker", name()}, {"text", text}});
  }
  const std::string message = text_of(record, "message");
  if (message == "listening") on_listening(record);
  if (message == "ready") on_ready(record);
  if (message == "stopping" && said_ready_ && is_asked()) change(ReplicaState::ending);
  pass_on(name(), std::move(record));
}

// While it loads the model, its health tells how far it is.
void Replica::on_listening(const json& record) {
  if (state_ != ReplicaState::starting || said_ready_) return;
  read_number(record, "port", port_);
  if (port_ != 0) check_health();
}

void Replica::on_ready(const json& record) {
  if (state_ != ReplicaState::starting) return;
  read_number(record, "port", port_);
  read_number(record, "max_body_bytes", max_body_bytes_);
  if (port_ == 0) return log(LogLevel::error, "a worker names no port", {{"worker", name()}});
  said_ready_ = true;
  ready_at_ = steady_clock::now();
  silent_ = 0;
  check_health();  // requests come after it has reported what it serves
}

void Replica::doubt() {
  if (state_ != ReplicaState::ready) return;
  change(ReplicaState::starting);
  check_health();
}

bool Replica::is_asked() const {
  return port_ != 0 && (state_ == ReplicaState::starting || state_ == ReplicaState::ready);
}

// Asks for the worker's health at intervals.
void Replica::stand() {
  health_timer_.expires_after(config_.health_interval);
  health_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->is_asked()) self->check_health();
  });
}

void Replica::check_health() {
  if (said_ready_ && steady_clock::now() - ready_at_ >= config_.stable) in_a_row_ = 0;
  if (probe_) probe_->cancel();  // one from before it was ready
  answer_.clear();
  probe_ = start_upstream(
      io_, {.port = port_,
            .head = "GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
            .on_head = [this](const UpstreamHead& head) { answer_status_ = head.status; },
            .on_data = [this](const std::string& data) { answer_ += data; },
            .on_end = [this](UpstreamEnd end) { on_health(end == UpstreamEnd::whole); }});
  health_timer_.expires_after(config_.health_timeout);
  health_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->on_health(false);
  });
}

void Replica::on_health(bool healthy) {
  if (!probe_) return;
  probe_->cancel();
  probe_.reset();
  if (!is_asked() || stopping_) return;
  if (!said_ready_) {  // its time to load has no limit here
    if (healthy) on_progress(json::parse(answer_, nullptr, false));
    return stand();
  }
  silent_ = healthy ? 0 : silent_ + 1;
  // A worker that answers 503 lives, but serves nothing yet or any more.
  if (healthy && answer_status_ == 200) {
    facts_ = json::parse(answer_, nullptr, false);
    if (state_ == ReplicaState::starting) {
      was_ready_ = true;
      progress_ = nullptr;
      further_at_ = steady_clock::now();
      change(ReplicaState::ready);
    }
  }
  if (silent_ < kMostSilent) return stand();
  log(LogLevel::error, "a worker does not answer: it is killed", {{"worker", name()}});
  child_->signal(SIGKILL);
}

void Replica::on_progress(const json& health) {
  if (!health.is_object()) return;
  json progress = health.value("progress", json());
  if (!progress.is_object()) return;
  const auto done = [](const json& at) { return at.is_object() ? at.value("done", json()) : at; };
  const auto phase = [](const json& at) { return at.is_object() ? at.value("phase", json()) : at; };
  if (done(progress) != done(progress_) || phase(progress) != phase(progress_)) {
    further_at_ = steady_clock::now();
  }
  progress_ = std::move(progress);
}

// The process of a model on demand has ended. A request that wants the model loads it again.
void Replica::on_unloaded() {
  const bool wanted = std::exchange(unloading_, false);
  const bool failed = !wanted && !was_ready_;
  if (failed) ++failures_;
  if (!wanted) {
    log(LogLevel::error, failed ? "the model cannot be loaded" : "a worker ended",
        {{"worker", name()}, {"problem", problem_}});
  }
  change(ReplicaState::unloaded);
}

void Replica::on_exit(int status) {
  health_timer_.cancel();
  timer_.cancel();
  child_.reset();
  port_ = 0;
  problem_ = cat("exit status ", status, status == kLost ? " (it lost its device or a file)" : "",
                 last_line_.empty() ? "" : ": ", last_line_);
  const bool stood = answers() && steady_clock::now() - ready_at_ >= config_.stable;
  if (stood) in_a_row_ = 0;
  progress_ = nullptr;
  if (stopping_) return change(ReplicaState::given_up);
  if (options_.on_demand) return on_unloaded();
  if (status == kWrongUsage || in_a_row_ >= config_.max_restarts) {
    log(LogLevel::error, "a worker is given up", {{"worker", name()}, {"problem", problem_}});
    return change(ReplicaState::given_up);
  }
  const std::chrono::milliseconds pause = back_off_of(config_, in_a_row_);
  ++in_a_row_;
  ++restarts_;
  log(LogLevel::warn, "a worker ended: it is started again",
      {{"worker", name()}, {"problem", problem_}, {"pause_ms", cat(pause.count())}});
  after(pause, &Replica::run);
  change(ReplicaState::paused);
}

void Replica::change(ReplicaState state) {
  state_ = state;
  on_change_();
}

}  // namespace rbee::server
