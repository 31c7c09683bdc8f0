#pragma once
// Metrics of an image worker's requests, in Prometheus' text format. Thread-safe.

#include <mutex>
#include <string>

#include "rbee/engine/api/image.h"
#include "server/worker/prometheus.h"

namespace rbee::server {

class ImageMetrics {
 public:
  ImageMetrics();
  void count_rejected();
  // seconds: from arrival to the last event.
  void count(Outcome outcome, double seconds);
  std::string render(const engine::ImageModelInfo& model, const engine::ImageStats& stats,
                     double uptime_seconds) const;

 private:
  mutable std::mutex mutex_;
  OutcomeCounts outcomes_{};
  Histogram total_;
};

}  // namespace rbee::server
