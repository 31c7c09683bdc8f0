#include "server/llm/metrics.h"

namespace rbee::server {
namespace {

void write_engine(std::string& out, const engine::EngineStats& stats) {
  write_metric(out, "rbee_requests_running", "gauge", "Requests in generation.", stats.running);
  write_metric(out, "rbee_requests_waiting", "gauge", "Requests in the queue.", stats.waiting);
  write_metric(out, "worker_tokens_in_total", "counter", "Prompt tokens evaluated.",
               stats.prompt_tokens);
  write_metric(out, "worker_tokens_generated_total", "counter", "Tokens generated.",
               stats.generated_tokens);
  write_metric(out, "rbee_prompt_seconds_total", "counter", "Engine time spent on prompts.",
               stats.prompt_seconds);
  write_metric(out, "rbee_decode_seconds_total", "counter", "Engine time spent on generation.",
               stats.decode_seconds);
  write_metric(out, "rbee_kv_cache_blocks", "gauge", "Blocks of the KV cache.",
               stats.kv_blocks_total);
  write_metric(out, "rbee_kv_cache_blocks_used", "gauge", "Blocks of the KV cache in use.",
               stats.kv_blocks_used);
  write_metric(out, "rbee_device_memory_bytes", "gauge", "Memory of the device.",
               stats.device_memory_bytes);
  write_metric(out, "rbee_device_memory_free_bytes", "gauge", "Free memory of the device.",
               stats.device_memory_free_bytes);
  write_metric(out, "rbee_healthy", "gauge", "0 after a device error.", stats.healthy ? 1 : 0);
}

}  // namespace

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
  describe_metric(out, "rbee_model_info", "gauge", "The model that is served; always 1.");
  out +=
      cat("rbee_model_info{model=\"", metric_label(model.id), "\",architecture=\"",
          metric_label(model.architecture), "\",quantization=\"", metric_label(model.quantization),
          "\",device=\"", metric_label(model.device), "\"} 1\n");
  write_metric(out, "worker_uptime_seconds", "gauge", "Seconds since the model was ready.",
               uptime_seconds);
  write_metric(out, "worker_vram_bytes", "gauge", "Device memory of weights and KV cache.",
               model.weight_bytes + model.kv_cache_bytes);
  write_engine(out, stats);

  const std::lock_guard lock(mutex_);
  write_outcomes(out, outcomes_);
  generation_ms_.write(out, "worker_inference_duration_ms",
                       "Engine's time on a request, prompt and tokens.");
  first_token_.write(out, "rbee_time_to_first_token_seconds", "From arrival to the first text.");
  per_token_.write(out, "rbee_time_per_output_token_seconds",
                   "Mean of the tokens after the first.");
  total_.write(out, "rbee_request_duration_seconds", "From arrival to the last event.");
  return out;
}

}  // namespace rbee::server
