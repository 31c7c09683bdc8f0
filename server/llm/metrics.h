#pragma once
// Metrics of the worker's requests, in Prometheus' text format 0.0.4. Thread-safe.

#include <mutex>
#include <optional>
#include <string>

#include "rbee/engine/api/text.h"
#include "server/worker/prometheus.h"

namespace rbee::server {

// Times of one request that ran, in seconds; negative = did not happen.
struct RequestTimes {
  double first_token = -1;  // arrival to the first piece of text
  double per_token = -1;    // mean of the tokens after the first
  double generation = -1;   // engine time for prompt and tokens
  double total = -1;        // arrival to the last event
  double waited = -1;       // arrival to the engine's first work on it
  double prefill = -1;      // from then to the first piece of text
  double decode = -1;       // from there to the last piece
  // For an answer that came to its end.
  std::optional<engine::StopReason> reason = std::nullopt;
  int32_t prompt_tokens = 0, tokens_out = 0;
};

class Metrics {
 public:
  Metrics();
  void count(Outcome outcome);
  void count(Outcome outcome, const RequestTimes& times);
  // A piece of an answer came this long after the piece before.
  void add_piece(double seconds);
  // The engine began a request with this many prompt tokens, cached ones included.
  void begin(int32_t prompt_tokens);
  std::string render(const engine::ModelInfo& model, const engine::EngineStats& stats,
                     double uptime_seconds) const;

 private:
  void add_phases(const RequestTimes& times);  // under the lock

  mutable std::mutex mutex_;
  OutcomeCounts outcomes_{};
  uint64_t prompt_tokens_ = 0;
  uint64_t stopped_ = 0, cut_off_ = 0;  // finished answers
  Histogram first_token_;
  Histogram per_token_;
  Histogram between_pieces_;
  Histogram total_;
  Histogram generation_ms_;
  Histogram waited_, prefill_, decode_, inference_;
  Histogram prompt_lengths_, answer_lengths_;
};

}  // namespace rbee::server
