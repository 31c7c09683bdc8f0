#include "server/embedding/service.h"

#include <algorithm>
#include <chrono>

#include "server/contract/embedding_responses.h"
#include "server/embedding/vector_bytes.h"

namespace rbee::server {
namespace {

std::vector<std::string> all_base64(const std::vector<std::vector<float>>& vectors,
                                    const VectorEncoding& encoding) {
  std::vector<std::string> out;
  out.reserve(vectors.size());
  for (const auto& vector : vectors) out.push_back(to_base64(vector_bytes(vector, encoding)));
  return out;
}

// The vectors in a row.
Response bytes_response(const EmbeddingAnswer& answer, const VectorEncoding& encoding) {
  Response out;
  out.content_type = "application/octet-stream";
  for (const auto& vector : answer.vectors) out.body += vector_bytes(vector, encoding);
  if (encoding.format == VectorFormat::bytes) {
    const size_t each = out.body.size() / std::max<size_t>(answer.vectors.size(), 1);
    out.headers.emplace_back("metadata", vector_places_json(answer, encoding, each));
  }
  return out;
}

Response vectors_response(EmbeddingAnswer answer, const VectorEncoding& encoding) {
  if (encoding.format == VectorFormat::base64) {
    answer.base64 = all_base64(answer.vectors, encoding);
  } else if (encoding.format != VectorFormat::numbers) {
    return bytes_response(answer, encoding);
  }
  return json_response(200, embeddings_json(answer));
}

[[noreturn]] void refuse_value(const char* field, std::string_view known, std::string message) {
  std::string constraint = cat("one_of(", known, ")");
  message += cat(", wanted one of ", known);
  throw InvalidBody({{field, std::move(constraint), std::move(message), {}}});
}

// The prompt that the checkpoint has for Cohere's kind of texts; none: it has none for this one.
std::optional<std::string> prompt_for(const std::string& input_type,
                                      const engine::EmbeddingInfo& info) {
  struct Kind {
    std::string_view name;
    std::vector<std::string_view> prompts;  // as makers of models name them
  };
  static const std::vector<Kind> kKinds = {{"search_query", {"query"}},
                                           {"search_document", {"document", "passage"}},
                                           {"classification", {}},
                                           {"clustering", {}}};
  const auto known = [&](std::string_view name) {
    return std::ranges::find(info.prompts, name) != info.prompts.end();
  };
  if (known(input_type)) return input_type;
  const auto kind = std::ranges::find(kKinds, input_type, &Kind::name);
  std::string names;
  for (const Kind& each : kKinds) names += cat(names.empty() ? "" : ", ", each.name);
  for (const std::string& prompt : info.prompts) names += cat(", ", prompt);
  if (kind == kKinds.end()) {
    refuse_value("input_type", names, cat("Unsupported input_type '", input_type, "'"));
  }
  const auto prompt = std::ranges::find_if(kind->prompts, known);
  return prompt != kind->prompts.end() ? std::optional(std::string(*prompt)) : std::nullopt;
}

// What vLLM calls it that a model is for.
void check_task(const std::string& task, std::string_view own) {
  if (task.empty() || task == own) return;
  refuse_value("task", own, cat("Unsupported task: '", task, "'"));
}

engine::EmbeddingRequest pairs_request(const std::string& client, const PairLimits& limits,
                                       bool probability) {
  return {.client = client,
          .truncate = limits.truncate,
          .query_tokens = limits.query,
          .document_tokens = limits.document,
          .probability = probability};
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
  engine::EmbeddingRequest request{.client = body.client};
  for (const EmbeddingText& input : body.inputs) {
    if (const auto* parts = std::get_if<EmbeddingParts>(&input)) {
      request.inputs.emplace_back(joined(*parts));
    } else if (const auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      request.inputs.emplace_back(*ids);
    } else {
      request.inputs.emplace_back(std::get<std::string>(input));
    }
  }
  request.truncate = body.truncate;
  request.keeps_last = body.keeps_last;
  request.add_special = body.add_special;
  return request;
}

engine::EmbeddingRequest EmbeddingService::embedding_request(const EmbeddingBody& body) const {
  engine::EmbeddingRequest request = request_of(body);
  request.dimensions = body.dimensions;
  request.normalise = body.normalize;
  request.prompt_name = body.prompt_name;
  return request;
}

engine::EmbeddingRequest EmbeddingService::classifying_request(const EmbeddingBody& body) const {
  engine::EmbeddingRequest request = request_of(body);
  request.probability = body.normalize.value_or(true);
  request.alone = true;
  return request;
}

EmbeddingBody EmbeddingService::with_chat_read(EmbeddingBody body) const {
  std::vector<engine::ChatMessage> messages;
  for (const Message& message : body.messages) {
    messages.push_back({.role = message.role,
                        .content = message.content,
                        .reasoning = message.reasoning,
                        .tool_call_id = message.tool_call_id,
                        .name = message.name});
    for (const SentCall& call : message.tool_calls) {
      messages.back().tool_calls.push_back({call.id, call.name, call.arguments});
    }
  }
  const engine::ChatOptions options{.tools = {},
                                    .tool = {},
                                    .template_variables = body.chat.template_variables,
                                    .continue_last = body.chat.continue_last,
                                    .add_generation_prompt = body.chat.add_generation_prompt};
  body.inputs.emplace_back(engine_.chat_tokens(messages, options, body.add_special));
  body.messages.clear();
  return body;
}

std::shared_ptr<DelayedResponse> EmbeddingService::start_vectors(engine::EmbeddingRequest request,
                                                                 const VectorEncoding& encoding,
                                                                 std::string_view object) {
  const std::string id = new_job_id();
  return start(std::move(request), id,
               [id, model = model_id(), encoding, object](engine::EmbeddingResult result) {
                 const char* const kind = object == "embedding" ? "embd-" : "pool-";
                 return vectors_response({.id = kind + id,
                                          .object = object,
                                          .created = now_seconds(),
                                          .model = model,
                                          .vectors = std::move(result.vectors),
                                          .base64 = {},
                                          .tokens = result.tokens},
                                         encoding);
               });
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed(const EmbeddingBody& body) {
  return start_vectors(embedding_request(body), body.encoding, "embedding");
}

std::shared_ptr<DelayedResponse> EmbeddingService::pool(const EmbeddingBody& body) {
  const bool ranks = engine_.info().ranks;
  check_task(body.task, ranks ? "classify" : "embed");
  return start_vectors(ranks ? classifying_request(body) : embedding_request(body), body.encoding,
                       "pooling");
}

std::shared_ptr<DelayedResponse> EmbeddingService::classify(const EmbeddingBody& body) {
  check_task(body.task, "classify");
  const std::string id = new_job_id();
  return start(classifying_request(body), id,
               [id, model = model_id()](engine::EmbeddingResult result) {
                 return json_response(200, classes_json({.id = "classify-" + id,
                                                         .created = now_seconds(),
                                                         .model = model,
                                                         .vectors = std::move(result.vectors),
                                                         .base64 = {},
                                                         .tokens = result.tokens}));
               });
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed_llama(const EmbeddingBody& body) {
  return start(embedding_request(body), new_job_id(), [](engine::EmbeddingResult result) {
    return json_response(
        200, llama_embeddings_json(
                 {.id = {}, .model = {}, .vectors = std::move(result.vectors), .base64 = {}}));
  });
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed_tei(const EmbeddingBody& body) {
  return start(embedding_request(body), new_job_id(), [](const engine::EmbeddingResult& result) {
    return json_response(200, tei_embeddings_json(result.vectors));
  });
}

std::shared_ptr<DelayedResponse> EmbeddingService::embed_cohere(const CohereEmbedBody& body) {
  const std::string id = new_job_id();
  engine::EmbeddingRequest request = embedding_request(body.generic);
  if (!body.input_type.empty()) {
    request.prompt_name = prompt_for(body.input_type, engine_.info());
  }
  return start(std::move(request), id, [id, body](engine::EmbeddingResult result) {
    EmbeddingAnswer answer{
        .id = id, .model = {}, .vectors = {}, .base64 = {}, .tokens = result.tokens};
    if (body.base64) answer.base64 = all_base64(result.vectors, {});
    for (const auto& vector : result.vectors) {
      if (body.int8 || body.uint8) answer.bytes.push_back(scaled_bytes(vector));
      if (body.binary || body.ubinary) answer.bits.push_back(sign_bits(vector));
    }
    if (body.floats) answer.vectors = std::move(result.vectors);
    return json_response(200, cohere_embeddings_json(answer, body));
  });
}

std::shared_ptr<DelayedResponse> EmbeddingService::rerank(const RerankBody& body) {
  engine::EmbeddingRequest request = pairs_request(body.client, body.limits, body.use_activation);
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
                 return json_response(
                     200, body.tei ? tei_rerank_json(ranked)
                                   : rerank_json(cat("rerank-", id), model, ranked, result.tokens));
               });
}

std::shared_ptr<DelayedResponse> EmbeddingService::score(const ScoreBody& body) {
  engine::EmbeddingRequest request = pairs_request(body.client, body.limits, body.use_activation);
  const std::vector<engine::SharedText> first(body.first.begin(), body.first.end());
  const engine::SharedText instruction = body.instruction;
  for (size_t i = 0; i < body.second.size(); ++i) {
    const engine::SharedText& query = first[first.size() == 1 ? 0 : i];
    request.inputs.emplace_back(engine::TextPair{query, body.second[i], instruction});
  }
  const std::string id = new_job_id();
  return start(
      std::move(request), id, [model = model_id(), id](const engine::EmbeddingResult& result) {
        std::vector<float> scores;
        for (const auto& vector : result.vectors) scores.push_back(vector.at(0));
        return json_response(
            200, scores_json(cat("score-", id), model, now_seconds(), scores, result.tokens));
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
                        .capture_refusal = model.capture_refusal,
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
