#include "server/llm/service.h"

#include "rbee/core/log.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

engine::Request to_engine(const GenerateRequest& wire, const std::string& job_id) {
  engine::Request request;
  request.job_id = job_id;
  request.prompt = wire.prompt;
  for (const Message& message : wire.messages) {
    request.messages.push_back({message.role, message.content});
  }
  const auto set = [](auto& field, const auto& value) {
    if (value) field = *value;
  };
  set(request.max_tokens, wire.max_tokens);
  engine::SamplingParams& sampling = request.sampling;
  set(sampling.temperature, wire.temperature);
  set(sampling.top_k, wire.top_k);
  set(sampling.top_p, wire.top_p);
  set(sampling.min_p, wire.min_p);
  set(sampling.repetition_penalty, wire.repetition_penalty);
  set(sampling.frequency_penalty, wire.frequency_penalty);
  set(sampling.presence_penalty, wire.presence_penalty);
  set(sampling.repeat_last_n, wire.repeat_last_n);
  sampling.seed = wire.seed;
  request.stop = wire.stop;
  return request;
}

// What an engine's refusal to queue means to the client.
[[noreturn]] void refuse(const Error& error) {
  using Why = Refused::Why;
  switch (error.code()) {
    case Code::out_of_memory:
      throw Refused(Why::overloaded, error.what());
    case Code::unsupported:
      throw Refused(Why::stopping, error.what());
    case Code::device:
      throw Refused(Why::unhealthy, error.what());
    default:
      throw error;
  }
}

}  // namespace

LlmService::LlmService(engine::Engine& engine, ServiceOptions options)
    : engine_(engine), options_(std::move(options)), store_(options_.jobs) {}

std::string LlmService::new_job_id() const {
  return "job-" + uuid4();
}

std::function<void()> LlmService::canceller(std::string id) {
  return [this, id = std::move(id)] { cancel(id); };
}

std::shared_ptr<Job> LlmService::make_job(std::string id, std::unique_ptr<Reply> reply,
                                          std::shared_ptr<EventQueue> events) const {
  const engine::ModelInfo& model = engine_.model();
  return std::make_shared<Job>(std::move(id), std::move(reply), std::move(events),
                               model.weight_bytes + model.kv_cache_bytes, metrics_);
}

std::shared_ptr<Job> LlmService::submit(const GenerateRequest& request, std::shared_ptr<Job> job) {
  try {
    if (stopping_) throw Refused(Refused::Why::stopping, "the worker is stopping");
    if (!store_.add(job)) {
      throw Refused(Refused::Why::overloaded, "too many jobs wait for somebody to read them");
    }
    engine_.submit(to_engine(request, job->id()), job);
  } catch (const Error& error) {
    store_.remove(job->id());
    metrics_->count(Outcome::rejected);
    refuse(error);
  } catch (const Refused&) {
    metrics_->count(Outcome::rejected);
    throw;
  }
  // A shutdown that began meanwhile has not seen this job.
  if (stopping_) job->end_with(Code::cancelled, "the worker is stopping");
  return job;
}

std::shared_ptr<Job> LlmService::create_job(const GenerateRequest& request) {
  std::string id = new_job_id();
  auto events = std::make_shared<EventQueue>(canceller(id));
  auto reply = std::make_unique<JobStream>(events);
  return submit(request, make_job(std::move(id), std::move(reply), std::move(events)));
}

std::shared_ptr<EventQueue> LlmService::infer_stream(const GenerateRequest& request) {
  std::string id = new_job_id();
  auto events = std::make_shared<EventQueue>(canceller(id));
  submit(request, make_job(std::move(id), std::make_unique<InferStream>(events), nullptr));
  return events;
}

std::shared_ptr<DelayedResponse> LlmService::infer_text(const GenerateRequest& request) {
  std::string id = new_job_id();
  auto response = std::make_shared<DelayedResponse>(canceller(id));
  submit(request, make_job(std::move(id), std::make_unique<InferText>(response), nullptr));
  return response;
}

void LlmService::cancel(const std::string& id) {
  engine_.cancel(id);
}

WorkerInfo LlmService::info() const {
  const engine::ModelInfo& model = engine_.model();
  const engine::EngineStats stats = engine_.stats();
  const bool busy = stats.running + stats.waiting > 0;
  return {.id = options_.worker_id,
          .model_id = options_.model_id.empty() ? model.id : options_.model_id,
          .device = model.device,
          .port = port_,
          .status = stopping_ || !stats.healthy ? "stopping"
                    : busy                      ? "busy"
                                                : "ready",
          .implementation = options_.implementation,
          .version = options_.version};
}

Health LlmService::health() const {
  const engine::ModelInfo& model = engine_.model();
  return {.healthy = engine_.stats().healthy && !stopping_,
          .model = options_.model_id.empty() ? model.id : options_.model_id,
          .architecture = model.architecture,
          .quantization = model.quantization,
          .tokenizer_kind = model.tokenizer_kind,
          .vocab_size = model.vocab_size,
          .context_length = model.context_length,
          .parameters = model.parameters,
          .memory_bytes = model.weight_bytes + model.kv_cache_bytes,
          .uptime_seconds = std::chrono::duration<double>(Clock::now() - start_).count()};
}

std::string LlmService::metrics() const {
  return metrics_->render(engine_.model(), engine_.stats(),
                          std::chrono::duration<double>(Clock::now() - start_).count());
}

void LlmService::tick(Clock::time_point now) {
  for (const std::shared_ptr<Job>& job : store_.purge(now)) {
    log(LogLevel::info, "nobody read a job", {{"job_id", job->id()}});
    cancel(job->id());
  }
}

void LlmService::shutdown() {
  stopping_ = true;
  for (const std::shared_ptr<Job>& job : store_.all()) {
    job->end_with(Code::cancelled, "the worker is stopping");
  }
}

}  // namespace rbee::server
