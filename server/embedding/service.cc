#include "server/embedding/service.h"

#include <utility>

#include "rbee/core/experimental.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {
struct EmbeddingService::Counts {
  mutable std::mutex mutex;
  OutcomeCounts outcomes{};
  Histogram seconds{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}};

  void add(Outcome outcome, double duration) {
    const std::lock_guard lock(mutex);
    ++outcomes[static_cast<size_t>(outcome)];
    if (duration >= 0) seconds.add(duration);
  }
};

EmbeddingService::EmbeddingService(engine::EmbeddingEngine& engine, ServiceOptions options)
    : WorkerService(std::move(options)), engine_(engine), counts_(std::make_shared<Counts>()) {}

std::shared_ptr<DelayedResponse> EmbeddingService::start(engine::EmbeddingRequest request,
                                                         Answer answer, FailureBody failure) {
  const std::string id = new_job_id();
  request.job_id = id;
  auto response = std::make_shared<DelayedResponse>(canceller(id));
  auto job = std::make_shared<EmbeddingJob>(
      id, response,
      [id, answer = std::move(answer)](engine::EmbeddingResult result) {
        return answer(id, std::move(result));
      },
      failure,
      [counts = counts_](Outcome outcome, double seconds) { counts->add(outcome, seconds); });
  job->describe(engine_.info().ranks ? "rerank" : "embeddings", model_id());
  admit(job, [&] { engine_.submit(std::move(request), job); });
  return response;
}

WorkerService::State EmbeddingService::state() const {
  const engine::EngineStats stats = engine_.stats();
  const engine::ModelInfo& model = engine_.info().model;
  return {.model = model.id,
          .device = model.device,
          .busy = stats.running + stats.waiting > 0,
          .load = stats.running + stats.waiting,
          .healthy = stats.healthy,
          .memory = {.used = model.weight_bytes,
                     .device = stats.device_memory_bytes,
                     .device_free = stats.device_memory_free_bytes}};
}

void EmbeddingService::count_rejected() {
  counts_->add(Outcome::rejected, -1);
}

std::string EmbeddingService::health_json() const {
  const engine::ModelInfo& model = engine_.info().model;
  return to_json(Health{.healthy = healthy(),
                        .model = model_id(),
                        .architecture = model.architecture,
                        .quantization = model.quantization,
                        .tokenizer_kind = model.tokenizer_kind,
                        .vocab_size = model.vocab_size,
                        .context_length = model.context_length,
                        .parameters = model.parameters,
                        .memory_bytes = model.weight_bytes,
                        .uptime_seconds = uptime_seconds(),
                        .capture_refusal = model.capture_refusal,
                        .experimental = std::string(experimental(model.device)),
                        .ranks = engine_.info().ranks});
}

std::string EmbeddingService::metrics() const {
  const engine::EngineStats stats = engine_.stats();
  const engine::EmbeddingInfo& info = engine_.info();
  std::string out;
  describe_metric(out, "rbee_model_info", "gauge", "The model that is served; always 1.");
  out += cat("rbee_model_info{model=\"", metric_label(info.model.id), "\",architecture=\"",
             metric_label(info.model.architecture), "\",pooling=\"", info.pooling, "\"} 1\n");
  {
    const std::lock_guard lock(counts_->mutex);
    write_outcomes(out, counts_->outcomes);
    write_histogram(out, "worker_inference_duration_seconds", "From arrival to the answer.",
                    counts_->seconds);
  }
  write_metric(out, "worker_tokens_in_total", "counter", "Tokens evaluated.", stats.prompt_tokens);
  write_metric(out, "rbee_prompt_seconds_total", "counter", "Engine time.", stats.prompt_seconds);
  write_metric(out, "llamacpp:prompt_tokens_total", "counter", "Tokens evaluated.",
               stats.prompt_tokens);
  write_metric(out, "llamacpp:prompt_seconds_total", "counter", "Engine time.",
               stats.prompt_seconds);
  write_metric(out, "llamacpp:tokens_predicted_total", "counter", "Tokens generated.", 0);
  write_metric(out, "llamacpp:n_decode_total", "counter", "Steps of the model.", stats.steps);
  write_metric(out, "rbee_requests_running", "gauge", "Requests in the pass.", stats.running);
  write_metric(out, "rbee_requests_waiting", "gauge", "Requests that wait.", stats.waiting);
  write_metric(out, "rbee_healthy", "gauge", "0 after a device error.", stats.healthy ? 1 : 0);
  write_captured(out, info.model.capture_refusal.empty());
  write_metric(out, "rbee_uptime_seconds", "gauge", "Since the start.", uptime_seconds());
  return out;
}

Page EmbeddingService::page() const {
  constexpr std::string_view kHead = "<!doctype html><meta charset=utf-8><title>rbee</title>";
  const std::string_view route = engine_.info().ranks ? "/v1/rerank" : "/v1/embeddings";
  return {.html = cat(kHead, "<p>This worker answers <code>POST ", route, "</code>.</p>\n"),
          .policy =
              "default-src 'none'; base-uri 'none'; form-action 'none'; "
              "frame-ancestors 'none'"};
}

}  // namespace rbee::server
