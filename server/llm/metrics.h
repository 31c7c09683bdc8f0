#pragma once
// Figures of the worker's requests, in Prometheus' text format 0.0.4. Thread-safe.

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/engine.h"

namespace rbee::server {

enum class Outcome : uint8_t { completed, failed, cancelled, rejected };
inline constexpr int kOutcomes = 4;

// Times of one request that ran, in seconds; negative = did not happen.
struct RequestTimes {
  double first_token = -1;  // arrival to the first piece of text
  double per_token = -1;    // mean of the tokens after the first
  double generation = -1;   // engine's time on prompt and tokens
  double total = -1;        // arrival to the last event
};

// Counts of values at or below each bound.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // ascending
  void add(double value);
  void write(std::string& out, std::string_view name) const;

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // one more than bounds, each value counted once
  double sum_ = 0;
  uint64_t total_ = 0;
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
  std::array<uint64_t, kOutcomes> outcomes_{};
  Histogram first_token_;
  Histogram per_token_;
  Histogram total_;
  Histogram generation_ms_;
};

}  // namespace rbee::server
