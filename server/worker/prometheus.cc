#include "server/worker/prometheus.h"

#include <algorithm>

namespace rbee::server {
namespace {

constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {"completed", "failed",
                                                                   "cancelled", "rejected"};

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bucket - bounds_.begin())];
  sum_ += value;
  ++total_;
}

void Histogram::write(std::string& out, std::string_view name, std::string_view labels) const {
  const std::string all = labels.empty() ? "" : cat("{", labels, "}");
  const std::string more = labels.empty() ? "" : cat(labels, ",");
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += cat(name, "_bucket{", more, "le=\"", bounds_[i], "\"} ", below, "\n");
  }
  out += cat(name, "_bucket{", more, "le=\"+Inf\"} ", total_, "\n", name, "_sum", all, " ", sum_,
             "\n", name, "_count", all, " ", total_, "\n");
}

void write_histogram(std::string& out, std::string_view name, std::string_view help,
                     const Histogram& histogram, std::string_view labels) {
  describe_metric(out, name, "histogram", help);
  histogram.write(out, name, labels);
}

void describe_metric(std::string& out, std::string_view name, std::string_view type,
                     std::string_view help) {
  out += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void write_outcomes(std::string& out, const OutcomeCounts& counts) {
  describe_metric(out, "worker_requests_total", "counter", "Requests by how they ended.");
  for (size_t i = 0; i < counts.size(); ++i) {
    out += cat("worker_requests_total{outcome=\"", kOutcomeNames[i], "\"} ", counts[i], "\n");
  }
}

void write_captured(std::string& out, bool captured) {
  write_metric(out, "rbee_graphs_captured", "gauge", "1 where steps are captured and replayed.",
               captured ? 1 : 0);
}

std::string metric_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out;
}

}  // namespace rbee::server
