#pragma once
// A hive that only accepts heartbeats, run by our own server.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/server.h"

namespace rbee::testing {

struct HiveOptions {
  int status = 200;  // status of its answers
  uint16_t port = 0;
  std::string certificate;  // TLS files, for localhost; empty = plain
  std::string key;
  std::function<void()> on_message;  // called for each message, on the hive's thread
};

class Hive {
 public:
  explicit Hive(HiveOptions options = {})
      : on_message_(std::move(options.on_message)),
        scheme_(options.certificate.empty() ? "http://127.0.0.1:" : "https://localhost:"),
        server_(
            {.port = options.port, .tls_certificate = options.certificate, .tls_key = options.key},
            routes(options.status), server::ApiKeys()) {}

  uint16_t port() const { return server_.port(); }
  std::string url() const { return cat(scheme_, port(), "/base/"); }
  bool wait_messages(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return messages_.size() >= count; });
  }
  std::vector<std::string> messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  server::Router routes(int status) {
    server::Router router;
    router.add({.method = "POST",
                .pattern = "/base/v1/worker-heartbeat",
                .handler =
                    [this, status](const server::Request& request) {
                      take(request.body);
                      return server::json_response(status, R"({"status":"ok"})");
                    },
                .body = server::Body::json});
    return router;
  }
  void take(const std::string& message) {
    if (on_message_) on_message_();
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    changed_.notify_all();
  }

  const std::function<void()> on_message_;
  const std::string scheme_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> messages_;
  server::Server server_;  // last: it calls take()
};

}  // namespace rbee::testing
