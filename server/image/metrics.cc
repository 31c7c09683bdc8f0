#include "server/image/metrics.h"

namespace rbee::server {
namespace {

void write_engine(std::string& out, const engine::ImageStats& stats) {
  write_metric(out, "rbee_requests_running", "gauge", "Requests in work.", stats.running);
  write_metric(out, "rbee_requests_waiting", "gauge", "Requests in the queue.", stats.waiting);
  write_metric(out, "rbee_images_total", "counter", "Pictures made.", stats.images);
  write_metric(out, "rbee_image_steps_total", "counter", "Calls of the denoiser.", stats.steps);
  write_metric(out, "rbee_image_text_seconds_total", "counter", "Time in text encoders.",
               stats.text_seconds);
  write_metric(out, "rbee_image_sample_seconds_total", "counter", "Time in sampling.",
               stats.sample_seconds);
  write_metric(out, "rbee_image_decode_seconds_total", "counter", "Time in the VAE's decoder.",
               stats.decode_seconds);
  write_metric(out, "rbee_device_memory_bytes", "gauge", "Memory of the device.",
               stats.device_memory_bytes);
  write_metric(out, "rbee_device_memory_free_bytes", "gauge", "Free memory of the device.",
               stats.device_memory_free_bytes);
  write_metric(out, "rbee_healthy", "gauge", "0 after a device error.", stats.healthy ? 1 : 0);
}

}  // namespace

ImageMetrics::ImageMetrics() : total_({0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}) {}

void ImageMetrics::count_rejected() {
  const std::lock_guard lock(mutex_);
  ++outcomes_[static_cast<size_t>(Outcome::rejected)];
}

void ImageMetrics::count(Outcome outcome, double seconds) {
  const std::lock_guard lock(mutex_);
  ++outcomes_[static_cast<size_t>(outcome)];
  total_.add(seconds);
}

std::string ImageMetrics::render(const engine::ImageModelInfo& model,
                                 const engine::ImageStats& stats, double uptime_seconds) const {
  std::string out;
  describe_metric(out, "rbee_model_info", "gauge", "The model that is served; always 1.");
  out += cat("rbee_model_info{model=\"", metric_label(model.id), "\",architecture=\"",
             metric_label(model.architecture), "\",dtype=\"", metric_label(model.dtype),
             "\",device=\"", metric_label(model.device), "\"} 1\n");
  write_metric(out, "worker_uptime_seconds", "gauge", "Seconds since the model was ready.",
               uptime_seconds);
  write_metric(out, "worker_vram_bytes", "gauge", "Device memory of the weights.",
               model.weight_bytes);
  write_engine(out, stats);
  write_captured(out, model.capture_refusal.empty());
  const std::lock_guard lock(mutex_);
  write_outcomes(out, outcomes_);
  write_histogram(out, "rbee_request_duration_seconds", "From arrival to the last event.", total_);
  return out;
}

}  // namespace rbee::server
