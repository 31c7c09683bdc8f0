#pragma once
// Figures of the worker's requests, in Prometheus' text format 0.0.4. Thread-safe.

#include <mutex>
#include <string>

#include "rbee/engine/engine.h"
#include "server/worker/prometheus.h"

namespace rbee::server {

// Times of one request that ran, in seconds; negative = did not happen.
struct RequestTimes {
  double first_token = -1;  // arrival to the first piece of text
  double per_token = -1;    // mean of the tokens after the first
  double generation = -1;   // engine's time on prompt and tokens
  double total = -1;        // arrival to the last event
};

class Metrics {
 public:
  Metrics();
  void count(Outcome outcome);
  void count(Outcome outcome, const RequestTimes& times);
  std::string render(const engine::ModelInfo& model, const engine::EngineStats& stats,
                     double uptime_seconds) const;

 private:
  mutable std::mutex mutex_;
  OutcomeCounts outcomes_{};
  Histogram first_token_;
  Histogram per_token_;
  Histogram total_;
  Histogram generation_ms_;
};

}  // namespace rbee::server
