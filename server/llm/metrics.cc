#include "server/llm/metrics.h"

#include <algorithm>

namespace rbee::server {
namespace {

// vLLM's buckets for the phases of a request, with shorter ones added, and for its lengths.
const std::vector<double> kPhaseSeconds = {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5,
                                           2,    2.5,  5,   10,  15,  20,  30,  40,
                                           50,   60,   120, 240, 480, 960, 1920};
const std::vector<double> kLengths = {1,    2,    5,    10,    20,    50,    100,    200,   500,
                                      1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};

// 0 if nothing was counted.
double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Under vLLM's names if a figure means the same there, because dashboards use them.
// label: names the model.
void write_batching(std::string& out, const engine::EngineStats& stats, const std::string& label) {
  const auto write = [&](const char* name, const char* type, const char* help, auto value) {
    write_metric(out, name, type, help, value, label);
  };
  write("vllm:num_requests_running", "gauge", "Requests that share the engine's steps.",
        stats.running);
  write("vllm:num_requests_waiting", "gauge", "Requests that wait for a place.", stats.waiting);
  const double total = static_cast<double>(std::max<int64_t>(stats.kv_blocks_total, 1));
  write("vllm:kv_cache_usage_perc", "gauge", "Share of the KV cache that requests use; 1 is all.",
        static_cast<double>(stats.kv_blocks_used) / total);
  write("vllm:num_preemptions_total", "counter", "Requests that lost their blocks, for a while.",
        stats.preemptions);
  write("vllm:prefix_cache_queries_total", "counter", "Tokens looked up in the KV cache.",
        stats.prefix_queries);
  write("vllm:prefix_cache_hits_total", "counter", "Of these, tokens that were there.",
        stats.prefix_hits);
  write("vllm:spec_decode_num_drafts_total", "counter", "Steps of requests with draft tokens.",
        stats.drafts);
  write("vllm:spec_decode_num_draft_tokens_total", "counter", "Draft tokens.", stats.draft_tokens);
  write("vllm:spec_decode_num_accepted_tokens_total", "counter", "Of these, tokens that came.",
        stats.accepted_tokens);
  write("vllm:generation_tokens_total", "counter", "Tokens generated.", stats.generated_tokens);
}

// The same under llama-server's names, which have no labels.
void write_llama_names(std::string& out, const engine::EngineStats& stats) {
  write_metric(out, "llamacpp:prompt_tokens_total", "counter", "Prompt tokens evaluated.",
               stats.prompt_tokens);
  write_metric(out, "llamacpp:prompt_seconds_total", "counter", "Engine time spent on prompts.",
               stats.prompt_seconds);
  write_metric(out, "llamacpp:tokens_predicted_total", "counter", "Tokens generated.",
               stats.generated_tokens);
  write_metric(out, "llamacpp:tokens_predicted_seconds_total", "counter",
               "Engine time spent on generation.", stats.decode_seconds);
  write_metric(out, "llamacpp:prompt_tokens_cached_total", "counter",
               "Prompt tokens that were in the KV cache.", stats.prefix_hits);
  write_metric(out, "llamacpp:n_decode_total", "counter", "Steps of the model.", stats.steps);
  write_metric(out, "llamacpp:n_tokens_max", "counter",
               "Tokens of the longest prompt and answer so far.", stats.longest_text);
  write_metric(out, "llamacpp:n_busy_slots_per_decode", "gauge", "Mean of requests in a step.",
               ratio(static_cast<double>(stats.step_requests), static_cast<double>(stats.steps)));
  write_metric(out, "llamacpp:spec_decode_num_drafts_total", "counter",
               "Steps of a request with draft tokens.", stats.drafts);
  write_metric(out, "llamacpp:spec_decode_num_draft_tokens_total", "counter", "Draft tokens.",
               stats.draft_tokens);
  write_metric(out, "llamacpp:spec_decode_num_accepted_tokens_total", "counter",
               "Of these, tokens that came.", stats.accepted_tokens);
  write_metric(out, "llamacpp:prompt_tokens_seconds", "gauge",
               "Prompt tokens in a second of engine time, since the start.",
               ratio(static_cast<double>(stats.prompt_tokens), stats.prompt_seconds));
  write_metric(out, "llamacpp:predicted_tokens_seconds", "gauge",
               "Generated tokens in a second of engine time, since the start.",
               ratio(static_cast<double>(stats.generated_tokens), stats.decode_seconds));
  write_metric(out, "llamacpp:requests_processing", "gauge",
               "Requests that share the engine's steps.", stats.running);
  write_metric(out, "llamacpp:requests_deferred", "gauge", "Requests that wait for a place.",
               stats.waiting);
}

void write_engine(std::string& out, const engine::EngineStats& stats) {
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
  write_metric(out, "rbee_kv_cache_blocks_used", "gauge", "Blocks that running requests use.",
               stats.kv_blocks_used);
  write_metric(out, "rbee_kv_cache_blocks_kept", "gauge",
               "Blocks of texts that may come again; given up when needed.", stats.kv_blocks_kept);
  write_metric(out, "rbee_device_memory_bytes", "gauge", "Memory of the device.",
               stats.device_memory_bytes);
  write_metric(out, "rbee_device_memory_free_bytes", "gauge", "Free memory of the device.",
               stats.device_memory_free_bytes);
  write_metric(out, "rbee_healthy", "gauge", "0 after a device error.", stats.healthy ? 1 : 0);
}

void write_host_cache(std::string& out, const engine::EngineStats& stats) {
  if (stats.host_blocks_total == 0) return;
  write_metric(out, "rbee_host_cache_blocks", "gauge", "Blocks that host memory has room for.",
               stats.host_blocks_total);
  write_metric(out, "rbee_host_cache_blocks_kept", "gauge", "Blocks of texts that are there.",
               stats.host_blocks_kept);
  write_metric(out, "rbee_host_cache_stored_total", "counter", "Blocks copied to host memory.",
               stats.host_blocks_stored);
  write_metric(out, "rbee_host_cache_loaded_total", "counter", "Blocks copied back for a prompt.",
               stats.host_blocks_loaded);
  write_metric(out, "rbee_host_cache_dropped_total", "counter",
               "Blocks that made room for others in host memory.", stats.host_blocks_dropped);
  write_metric(out, "rbee_host_cache_hit_tokens_total", "counter",
               "Prompt tokens whose keys and values came from host memory.", stats.host_hits);
}

// Of a model that several ranks hold.
void write_group(std::string& out, int32_t ranks, const engine::EngineStats& stats) {
  if (ranks == 1) return;
  write_metric(out, "rbee_group_ranks", "gauge", "Processes that hold the model together.", ranks);
  write_metric(out, "rbee_group_commands_total", "counter", "Commands of rank 0 to the others.",
               stats.group_commands);
  write_metric(out, "rbee_group_bytes_total", "counter", "Bytes of these commands.",
               stats.group_bytes);
  write_metric(out, "rbee_group_wait_seconds_total", "counter",
               "Time that rank 0 waited for ranks that were behind with commands.",
               stats.group_wait_seconds);
}

}  // namespace

Metrics::Metrics()
    : first_token_({0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}),
      per_token_({0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}),
      between_pieces_({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                       0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80}),
      total_({0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}),
      generation_ms_({50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000}),
      waited_(kPhaseSeconds),
      prefill_(kPhaseSeconds),
      decode_(kPhaseSeconds),
      inference_(kPhaseSeconds),
      prompt_lengths_(kLengths),
      answer_lengths_(kLengths) {}

void Metrics::count(Outcome outcome) {
  count(outcome, {});
}

void Metrics::count(Outcome outcome, const RequestTimes& times) {
  const std::lock_guard lock(mutex_);
  ++outcomes_[static_cast<size_t>(outcome)];
  if (times.reason) {
    const bool cut_off = *times.reason == engine::StopReason::max_tokens ||
                         *times.reason == engine::StopReason::context_full;
    ++(cut_off ? cut_off_ : stopped_);
  }
  if (times.first_token >= 0) first_token_.add(times.first_token);
  if (times.per_token >= 0) per_token_.add(times.per_token);
  if (times.total >= 0) total_.add(times.total);
  if (times.generation >= 0) generation_ms_.add(times.generation * 1000);
  if (times.reason) add_phases(times);
}

// Counts an answer that has ended, as vLLM does.
void Metrics::add_phases(const RequestTimes& times) {
  prompt_lengths_.add(times.prompt_tokens);
  answer_lengths_.add(times.tokens_out);
  waited_.add(std::max(times.waited, 0.0));
  if (times.prefill < 0) return;
  prefill_.add(times.prefill);
  decode_.add(times.decode);
  inference_.add(times.prefill + times.decode);
}

void Metrics::add_piece(double seconds) {
  const std::lock_guard lock(mutex_);
  between_pieces_.add(seconds);
}

void Metrics::begin(int32_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += static_cast<uint64_t>(prompt_tokens);
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
  const std::string label = cat("model_name=\"", metric_label(model.id), "\"");
  write_batching(out, stats, label);
  write_llama_names(out, stats);
  write_engine(out, stats);
  write_host_cache(out, stats);
  write_group(out, model.ranks, stats);
  write_captured(out, model.capture_refusal.empty());

  const std::lock_guard lock(mutex_);
  write_outcomes(out, outcomes_);
  write_metric(out, "vllm:prompt_tokens_total", "counter",
               "Tokens of prompts, found in the cache or not.", prompt_tokens_, label);
  describe_metric(out, "vllm:request_success_total", "counter", "Answers by how they ended.");
  const uint64_t aborted = outcomes_[static_cast<size_t>(Outcome::cancelled)];
  for (const auto& [reason, count] :
       {std::pair{"stop", stopped_}, {"length", cut_off_}, {"abort", aborted}}) {
    out += cat("vllm:request_success_total{", label, ",finished_reason=\"", reason, "\"} ", count,
               "\n");
  }
  write_histogram(out, "worker_inference_duration_ms",
                  "Engine's time on a request, prompt and tokens.", generation_ms_);
  write_histogram(out, "vllm:time_to_first_token_seconds", "From arrival to the first text.",
                  first_token_, label);
  write_histogram(out, "vllm:inter_token_latency_seconds",
                  "From one piece of an answer to the next.", between_pieces_, label);
  write_histogram(out, "vllm:request_time_per_output_token_seconds",
                  "Mean of the tokens after the first.", per_token_, label);
  write_histogram(out, "vllm:e2e_request_latency_seconds", "From arrival to the last event.",
                  total_, label);
  write_histogram(out, "vllm:request_queue_time_seconds",
                  "From arrival to the engine's work on it.", waited_, label);
  write_histogram(out, "vllm:request_prefill_time_seconds", "From there to the first text.",
                  prefill_, label);
  write_histogram(out, "vllm:request_decode_time_seconds", "From the first text to the last.",
                  decode_, label);
  write_histogram(out, "vllm:request_inference_time_seconds", "Of these two together.", inference_,
                  label);
  write_histogram(out, "vllm:request_prompt_tokens", "Tokens of a prompt.", prompt_lengths_, label);
  write_histogram(out, "vllm:request_generation_tokens", "Tokens of an answer.", answer_lengths_,
                  label);
  return out;
}

}  // namespace rbee::server
