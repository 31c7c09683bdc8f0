#include "server/llm/metrics.h"

#include <algorithm>

namespace rbee::server {
namespace {

constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {"completed", "failed",
                                                                   "cancelled", "rejected"};

void describe(std::string& out, std::string_view name, std::string_view type,
              std::string_view help) {
  out += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

template <typename T>
void single(std::string& out, std::string_view name, std::string_view type, std::string_view help,
            T value) {
  describe(out, name, type, help);
  out += cat(name, " ", value, "\n");
}

// A label's value: backslash, quote and line feed are escaped.
std::string label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out;
}

void write_engine(std::string& out, const engine::EngineStats& stats) {
  single(out, "rbee_requests_running", "gauge", "Requests in generation.", stats.running);
  single(out, "rbee_requests_waiting", "gauge", "Requests in the queue.", stats.waiting);
  single(out, "worker_tokens_in_total", "counter", "Prompt tokens evaluated.", stats.prompt_tokens);
  single(out, "worker_tokens_generated_total", "counter", "Tokens generated.",
         stats.generated_tokens);
  single(out, "rbee_prompt_seconds_total", "counter", "Engine time spent on prompts.",
         stats.prompt_seconds);
  single(out, "rbee_decode_seconds_total", "counter", "Engine time spent on generation.",
         stats.decode_seconds);
  single(out, "rbee_kv_cache_blocks", "gauge", "Blocks of the KV cache.", stats.kv_blocks_total);
  single(out, "rbee_kv_cache_blocks_used", "gauge", "Blocks of the KV cache in use.",
         stats.kv_blocks_used);
  single(out, "rbee_device_memory_bytes", "gauge", "Memory of the device.",
         stats.device_memory_bytes);
  single(out, "rbee_device_memory_free_bytes", "gauge", "Free memory of the device.",
         stats.device_memory_free_bytes);
  single(out, "rbee_healthy", "gauge", "0 after a device error.", stats.healthy ? 1 : 0);
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bucket - bounds_.begin())];
  sum_ += value;
  ++total_;
}

void Histogram::write(std::string& out, std::string_view name) const {
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += cat(name, "_bucket{le=\"", bounds_[i], "\"} ", below, "\n");
  }
  out += cat(name, "_bucket{le=\"+Inf\"} ", total_, "\n", name, "_sum ", sum_, "\n", name,
             "_count ", total_, "\n");
}

Metrics::Metrics()
    : first_token_({0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}),
      per_token_({0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}),
      total_({0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}),
      generation_ms_({50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000}) {}

void Metrics::count(Outcome outcome) {
  count(outcome, {});
}

void Metrics::count(Outcome outcome, const RequestTimes& times) {
  const std::lock_guard lock(mutex_);
  ++outcomes_[static_cast<size_t>(outcome)];
  if (times.first_token >= 0) first_token_.add(times.first_token);
  if (times.per_token >= 0) per_token_.add(times.per_token);
  if (times.total >= 0) total_.add(times.total);
  if (times.generation >= 0) generation_ms_.add(times.generation * 1000);
}

std::string Metrics::render(const engine::ModelInfo& model, const engine::EngineStats& stats,
                            double uptime_seconds) const {
  std::string out;
  describe(out, "rbee_model_info", "gauge", "The model that is served; always 1.");
  out += cat("rbee_model_info{model=\"", label(model.id), "\",architecture=\"",
             label(model.architecture), "\",quantization=\"", label(model.quantization),
             "\",device=\"", label(model.device), "\"} 1\n");
  single(out, "worker_uptime_seconds", "gauge", "Seconds since the model was ready.",
         uptime_seconds);
  single(out, "worker_vram_bytes", "gauge", "Device memory of weights and KV cache.",
         model.weight_bytes + model.kv_cache_bytes);
  write_engine(out, stats);

  const std::lock_guard lock(mutex_);
  describe(out, "worker_requests_total", "counter", "Requests by how they ended.");
  for (size_t i = 0; i < outcomes_.size(); ++i) {
    out += cat("worker_requests_total{outcome=\"", kOutcomeNames[i], "\"} ", outcomes_[i], "\n");
  }
  const auto histogram = [&out](const Histogram& values, std::string_view name,
                                std::string_view help) {
    describe(out, name, "histogram", help);
    values.write(out, name);
  };
  histogram(generation_ms_, "worker_inference_duration_ms",
            "Engine's time on a request, prompt and tokens.");
  histogram(first_token_, "rbee_time_to_first_token_seconds", "From arrival to the first text.");
  histogram(per_token_, "rbee_time_per_output_token_seconds",
            "Mean of the tokens after the first.");
  histogram(total_, "rbee_request_duration_seconds", "From arrival to the last event.");
  return out;
}

}  // namespace rbee::server
