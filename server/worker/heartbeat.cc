#include "server/worker/heartbeat.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::server {
namespace {

constexpr std::string_view kPath = "/v1/worker-heartbeat";

}  // namespace

Heartbeat::Heartbeat(HeartbeatOptions options, std::function<std::string()> body)
    : options_(std::move(options)), body_(std::move(body)) {
  thread_ = std::thread([this] { loop(); });
}

Heartbeat::~Heartbeat() {
  stop();
}

void Heartbeat::send_now() {
  const std::lock_guard lock(mutex_);
  due_ = true;
  wake_.notify_one();
}

void Heartbeat::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  client_.cancel();
  thread_.join();
  // Sends even if the last try failed, because the hive may be back.
  PostClient client;
  reached_ = send(client, options_.last_timeout).empty();
}

void Heartbeat::send_last() const {
  if (!reached_) return;
  PostClient client;
  send(client, options_.last_timeout);
}

void Heartbeat::loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    due_ = false;
    lock.unlock();
    const std::string problem = send(client_, options_.timeout);
    lock.lock();
    if (!stopping_) note(problem);
    const auto pause = reached_ ? options_.interval : std::min(options_.retry, options_.interval);
    wake_.wait_for(lock, pause, [this] { return due_ || stopping_; });
  }
}

std::string Heartbeat::send(PostClient& client, std::chrono::milliseconds timeout) const {
  try {
    const int status = client.post(options_.hive, kPath, body_(), timeout);
    return status < 200 || status > 299 ? cat("HTTP status ", status) : "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void Heartbeat::note(const std::string& problem) {
  const bool reached = problem.empty();
  if (reached == reached_) return;
  reached_ = reached;
  if (reached) {
    log(LogLevel::info, "the hive takes heartbeats again");
  } else {
    log(LogLevel::warn, "the hive takes no heartbeat", {{"error", problem}});
  }
}

}  // namespace rbee::server
