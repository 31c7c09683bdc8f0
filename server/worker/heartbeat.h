#pragma once
// Sends the hive regular messages that the worker is alive. Never fatal: it logs once when the hive
// stops answering, and once when the hive answers again.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "server/http/client.h"

namespace rbee::server {

struct HeartbeatOptions {
  Url hive;
  std::chrono::milliseconds interval{30'000};
  std::chrono::milliseconds retry{3'000};         // while the hive accepts no messages
  std::chrono::milliseconds timeout{5'000};       // for one message
  std::chrono::milliseconds last_timeout{2'000};  // for messages at the end
};

class Heartbeat {
 public:
  // Sends the first message at once. body: returns a message's JSON; called on the heartbeat's
  // thread, by stop() and by send_last().
  Heartbeat(HeartbeatOptions options, std::function<std::string()> body);
  ~Heartbeat();  // stop()
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Sends the next message now, because the state has changed.
  void send_now();
  // Ends the thread and sends one more message. Idempotent; from one thread.
  void stop();
  // After stop(): sends the very last message, unless the hive did not accept the one before.
  void send_last() const;

 private:
  void loop();
  // Why the message was not accepted; empty if it was.
  std::string send(PostClient& client, std::chrono::milliseconds timeout) const;
  void note(const std::string& problem);

  const HeartbeatOptions options_;
  const std::function<std::string()> body_;
  PostClient client_;
  bool reached_ = true;  // the last message was accepted
  std::mutex mutex_;
  std::condition_variable wake_;
  bool due_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rbee::server
