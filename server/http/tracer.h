#pragma once
// Sends spans to a collector: OTLP/HTTP in JSON (OTLP specification 1.x, sections "OTLP/HTTP" and
// "JSON Protobuf Encoding"), in batches, on a thread of its own. Callers never wait: spans that do
// not fit into the queue are dropped and counted.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/client.h"
#include "server/http/trace.h"

namespace rbee::server {

struct TracerOptions {
  Url endpoint;                                               // with its path, e.g. /v1/traces
  Headers headers;                                            // of each message
  std::vector<std::pair<std::string, std::string>> resource;  // e.g. service.name
  std::string version;                                        // of this program
  TraceSampler sampler;
  ClientTls tls;                              // for an https endpoint
  size_t max_queued = 2048;                   // spans
  size_t max_batch = 512;                     // most spans of a message
  std::chrono::milliseconds delay{5'000};     // longest time from a span to its message
  std::chrono::milliseconds timeout{10'000};  // for one message
  std::chrono::milliseconds retry{1'000};  // after a failed message that may be sent again; doubles
  std::chrono::milliseconds most_retry{30'000};
};

struct TracerCounts {
  uint64_t sent = 0;     // spans that the collector accepted
  uint64_t refused = 0;  // spans that it rejected
  uint64_t dropped = 0;  // spans that did not fit into the queue, or were left at the end
};

class Tracer {
 public:
  explicit Tracer(TracerOptions options);
  ~Tracer();  // stop(0)
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // For a span of that trace, with this parent.
  bool samples(std::string_view trace_id, const std::optional<TraceParent>& parent) const;
  // From any thread; never waits for the collector.
  void record(Span span) noexcept;
  // Sends the rest, for at most `patience`, and ends the thread. Idempotent; from one thread.
  void stop(std::chrono::milliseconds patience);
  TracerCounts counts() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void loop();
  // Sends the first batch of the queue without the lock.
  void send_batch(Lock& lock);
  void note(const std::string& problem);
  std::string message(const std::vector<Span>& spans) const;

  const TracerOptions options_;
  PostClient client_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Span> queue_;
  TracerCounts counts_;
  std::chrono::milliseconds pause_{0};  // before the next message, after a failed one
  bool reached_ = true;                 // the last message was accepted
  bool stopping_ = false;
  bool over_ = false;  // the thread sends no more
  std::thread thread_;
};

// The tracer's counts, in Prometheus' text format; empty if null.
std::string trace_metrics(const std::shared_ptr<Tracer>& tracer);

}  // namespace rbee::server
