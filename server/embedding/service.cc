#include "server/embedding/service.h"

#include <openssl/evp.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "server/contract/embedding_responses.h"

namespace rbee::server {
namespace {

// Numbers as OpenAI's clients read them.
std::string base64_of(const std::vector<float>& vector) {
  static_assert(std::endian::native == std::endian::little);
  const size_t bytes = vector.size() * sizeof(float);
  std::vector<unsigned char> raw(bytes);
  std::memcpy(raw.data(), vector.data(), bytes);
  std::vector<unsigned char> text((bytes + 2) / 3 * 4 + 1);
  const int length = EVP_EncodeBlock(text.data(), raw.data(), static_cast<int>(bytes));
  return {text.begin(), text.begin() + length};
}

std::vector<std::string> all_base64(const std::vector<std::vector<float>>& vectors) {
  std::vector<std::string> out;
  out.reserve(vectors.size());
  for (const auto& vector : vectors) out.push_back(base64_of(vector));
  return out;
}

int64_t now_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

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
                                                         const std::string& id,
                                                         EmbeddingJob::Answer answer) {
  request.job_id = id;
  auto response = std::make_shared<DelayedResponse>(canceller(id));
  auto job = std::make_shared<EmbeddingJob>(
      id, response, std::move(answer),
      [counts = counts_](Outcome outcome, double seconds) { counts->add(outcome, seconds); });
  job->describe(engine_.info().ranks ? "rerank" : "embeddings", model_id());
  admit(job, [&] { engine_.submit(std::move(request), job); });
  return response;
}

// Tokens of texts and tokens in a row, with the model's mark of the begin where a text is first.
std::vector<int32_t> EmbeddingService::joined(const EmbeddingParts& parts) const {
  std::vector<int32_t> out;
  for (const auto& part : parts) {
    if (const int32_t* id = std::get_if<int32_t>(&part)) {
      out.push_back(*id);
      continue;
    }
    const auto more = engine_.tokenize(std::get<std::string>(part), {.add_special = false});
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

engine::EmbeddingRequest EmbeddingService::request_of(const EmbeddingBody& body) const {
  engine::EmbeddingRequest request;
  for (const EmbeddingText& input : body.inputs) {
    if (const auto* parts = std::get_if<EmbeddingParts>(&input)) {
      request.inputs.emplace_back(joined(*parts));
    } else if (const auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      request.inputs.emplace_back(*ids);
    } else {
      request.inputs.emplace_back(std::get<std::string>(input));
    }
  }
  request.dimensions = body.dimensions;
  request.normalise = body.normalize;
  request.truncate = body.truncate;
  request.prompt_name = body.prompt_name;
  return request;
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed(const EmbeddingBody& body) {
  const std::string id = new_job_id();
  return start(request_of(body), id,
               [id, model = model_id(), base64 = body.base64](engine::EmbeddingResult result) {
                 EmbeddingAnswer answer{.id = "embd-" + id,
                                        .created = now_seconds(),
                                        .model = model,
                                        .vectors = {},
                                        .base64 = {},
                                        .tokens = result.tokens};
                 if (base64) {
                   answer.base64 = all_base64(result.vectors);
                 } else {
                   answer.vectors = std::move(result.vectors);
                 }
                 return embeddings_json(answer);
               });
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed_llama(const EmbeddingBody& body) {
  return start(request_of(body), new_job_id(), [](engine::EmbeddingResult result) {
    return llama_embeddings_json(
        {.id = {}, .model = {}, .vectors = std::move(result.vectors), .base64 = {}});
  });
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed_cohere(const CohereEmbedBody& body) {
  const std::string id = new_job_id();
  return start(request_of(body.generic), id, [id, body](engine::EmbeddingResult result) {
    EmbeddingAnswer answer{
        .id = id, .model = {}, .vectors = {}, .base64 = {}, .tokens = result.tokens};
    if (body.base64) answer.base64 = all_base64(result.vectors);
    if (body.floats) answer.vectors = std::move(result.vectors);
    return cohere_embeddings_json(answer, body.texts);
  });
}

std::shared_ptr<DelayedResponse> EmbeddingService::rerank(const RerankBody& body) {
  engine::EmbeddingRequest request{.truncate = body.truncate, .probability = body.use_activation};
  const engine::SharedText query = body.query, instruction = body.instruction;
  for (const std::string& document : body.documents) {
    request.inputs.emplace_back(engine::TextPair{query, document, instruction});
  }
  const std::string id = new_job_id();
  return start(std::move(request), id,
               [body, model = model_id(), id](const engine::EmbeddingResult& result) {
                 std::vector<RankedDocument> ranked;
                 for (size_t i = 0; i < result.vectors.size(); ++i) {
                   ranked.push_back({.index = i, .score = result.vectors[i].at(0)});
                   if (body.return_documents) ranked.back().text = body.documents[i];
                 }
                 std::ranges::stable_sort(
                     ranked, [](const auto& a, const auto& b) { return a.score > b.score; });
                 if (body.top_n > 0 && body.top_n < ranked.size()) ranked.resize(body.top_n);
                 if (body.tei) return tei_rerank_json(ranked);
                 return rerank_json(cat("rerank-", id), model, ranked, result.tokens);
               });
}

std::shared_ptr<DelayedResponse> EmbeddingService::score(const ScoreBody& body) {
  engine::EmbeddingRequest request{.truncate = body.truncate, .probability = body.use_activation};
  const std::vector<engine::SharedText> first(body.first.begin(), body.first.end());
  const engine::SharedText instruction = body.instruction;
  for (size_t i = 0; i < body.second.size(); ++i) {
    const engine::SharedText& query = first[first.size() == 1 ? 0 : i];
    request.inputs.emplace_back(engine::TextPair{query, body.second[i], instruction});
  }
  const std::string id = new_job_id();
  return start(std::move(request), id,
               [model = model_id(), id](const engine::EmbeddingResult& result) {
                 std::vector<float> scores;
                 for (const auto& vector : result.vectors) scores.push_back(vector.at(0));
                 return scores_json(cat("score-", id), model, now_seconds(), scores, result.tokens);
               });
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
