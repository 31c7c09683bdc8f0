#pragma once
// Prometheus' text format 0.0.4, and counters for workers of every kind.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/cat.h"

namespace rbee::server {

enum class Outcome : uint8_t { completed, failed, cancelled, rejected };
inline constexpr int kOutcomes = 4;
using OutcomeCounts = std::array<uint64_t, kOutcomes>;

// Counts of values at or below each bound.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // ascending
  void add(double value);
  // labels: on every line, e.g. model="a"; empty: none.
  void write(std::string& out, std::string_view name, std::string_view labels = {}) const;

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // one more than bounds; each value is counted once
  double sum_ = 0;
  uint64_t total_ = 0;
};

// The HELP and TYPE lines of a metric.
void describe_metric(std::string& out, std::string_view name, std::string_view type,
                     std::string_view help);
// A metric of one line. labels: as in Histogram::write.
template <typename T>
void write_metric(std::string& out, std::string_view name, std::string_view type,
                  std::string_view help, T value, std::string_view labels = {}) {
  describe_metric(out, name, type, help);
  const bool bare = labels.empty();
  out += cat(name, bare ? "" : "{", labels, bare ? "" : "}", " ", value, "\n");
}
void write_histogram(std::string& out, std::string_view name, std::string_view help,
                     const Histogram& histogram, std::string_view labels = {});
// worker_requests_total by outcome.
void write_outcomes(std::string& out, const OutcomeCounts& counts);
// rbee_graphs_captured.
void write_captured(std::string& out, bool captured);
// A label's value, with backslash, quote and line feed escaped.
std::string metric_label(std::string_view value);

}  // namespace rbee::server
