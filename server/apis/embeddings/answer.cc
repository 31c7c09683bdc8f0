#include "server/apis/embeddings/answer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/embeddings/response.h"
#include "server/apis/embeddings/vector_bytes.h"
#include "server/apis/openai/response.h"

namespace rbee::server {
namespace {

std::vector<std::string> all_base64(const std::vector<std::vector<float>>& vectors,
                                    const VectorEncoding& encoding) {
  std::vector<std::string> out;
  out.reserve(vectors.size());
  for (const auto& vector : vectors) out.push_back(to_base64(vector_bytes(vector, encoding)));
  return out;
}

// The vectors, one after another.
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

// The checkpoint's prompt for this input_type of Cohere's; nothing if it has none.
std::optional<std::string> prompt_for(const std::string& input_type,
                                      const engine::EmbeddingInfo& info) {
  struct Kind {
    std::string_view name;
    std::vector<std::string_view> prompts;  // by the names that checkpoints use
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

// `own`: vLLM's name for what the model does.
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

// The tokens of all parts in order, with the model's begin token if a text comes first.
std::vector<int32_t> joined(const engine::EmbeddingEngine& engine, const EmbeddingParts& parts) {
  std::vector<int32_t> out;
  for (const auto& part : parts) {
    if (const int32_t* id = std::get_if<int32_t>(&part)) {
      out.push_back(*id);
      continue;
    }
    const auto more = engine.tokenize(std::get<std::string>(part), {.add_special = false});
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

engine::EmbeddingRequest request_of(const EmbeddingService& service, const EmbeddingBody& body) {
  engine::EmbeddingRequest request{.client = body.client};
  for (const EmbeddingText& input : body.inputs) {
    if (const auto* parts = std::get_if<EmbeddingParts>(&input)) {
      request.inputs.emplace_back(joined(service.engine(), *parts));
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

engine::EmbeddingRequest embedding_request(const EmbeddingService& service,
                                           const EmbeddingBody& body) {
  engine::EmbeddingRequest request = request_of(service, body);
  request.dimensions = body.dimensions;
  request.normalise = body.normalize;
  request.prompt_name = body.prompt_name;
  return request;
}

engine::EmbeddingRequest classifying_request(const EmbeddingService& service,
                                             const EmbeddingBody& body) {
  engine::EmbeddingRequest request = request_of(service, body);
  request.probability = body.normalize.value_or(true);
  request.alone = true;
  return request;
}

std::string failure_body(const WireError& error, std::string_view message) {
  return openai_error_json(error.status, error.code, message);
}

Later start(EmbeddingService& service, engine::EmbeddingRequest request,
            EmbeddingService::Answer answer) {
  return service.start(std::move(request), std::move(answer), failure_body);
}

Later start_vectors(EmbeddingService& service, engine::EmbeddingRequest request,
                    const VectorEncoding& encoding, std::string_view object) {
  return start(service, std::move(request),
               [model = service.model_id(), encoding, object](const std::string& id,
                                                              engine::EmbeddingResult result) {
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

}  // namespace

EmbeddingBody with_chat_read(const EmbeddingService& service, EmbeddingBody body) {
  std::vector<engine::ChatMessage> messages;
  for (const SentMessage& message : body.messages) {
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
  body.inputs.emplace_back(service.engine().chat_tokens(messages, options, body.add_special));
  body.messages.clear();
  return body;
}

Later embed(EmbeddingService& service, const EmbeddingBody& body) {
  return start_vectors(service, embedding_request(service, body), body.encoding, "embedding");
}

Later pool(EmbeddingService& service, const EmbeddingBody& body) {
  const bool ranks = service.model().ranks;
  check_task(body.task, ranks ? "classify" : "embed");
  return start_vectors(
      service, ranks ? classifying_request(service, body) : embedding_request(service, body),
      body.encoding, "pooling");
}

Later classify(EmbeddingService& service, const EmbeddingBody& body) {
  check_task(body.task, "classify");
  return start(service, classifying_request(service, body),
               [model = service.model_id()](const std::string& id, engine::EmbeddingResult result) {
                 return json_response(200, classes_json({.id = "classify-" + id,
                                                         .created = now_seconds(),
                                                         .model = model,
                                                         .vectors = std::move(result.vectors),
                                                         .base64 = {},
                                                         .tokens = result.tokens}));
               });
}

Later embed_llama(EmbeddingService& service, const EmbeddingBody& body) {
  return start(
      service, embedding_request(service, body),
      [](const std::string&, engine::EmbeddingResult result) {
        return json_response(
            200, llama_embeddings_json(
                     {.id = {}, .model = {}, .vectors = std::move(result.vectors), .base64 = {}}));
      });
}

Later embed_tei(EmbeddingService& service, const EmbeddingBody& body) {
  return start(service, embedding_request(service, body),
               [](const std::string&, const engine::EmbeddingResult& result) {
                 return json_response(200, tei_embeddings_json(result.vectors));
               });
}

Later embed_cohere(EmbeddingService& service, const CohereEmbedBody& body) {
  engine::EmbeddingRequest request = embedding_request(service, body.generic);
  if (!body.input_type.empty()) {
    request.prompt_name = prompt_for(body.input_type, service.model());
  }
  return start(service, std::move(request),
               [body](const std::string& id, engine::EmbeddingResult result) {
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

Later rerank(EmbeddingService& service, const RerankBody& body) {
  engine::EmbeddingRequest request = pairs_request(body.client, body.limits, body.use_activation);
  const engine::SharedText query = body.query, instruction = body.instruction;
  for (const std::string& document : body.documents) {
    request.inputs.emplace_back(engine::TextPair{query, document, instruction});
  }
  return start(service, std::move(request),
               [body, model = service.model_id()](const std::string& id,
                                                  const engine::EmbeddingResult& result) {
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

Later score(EmbeddingService& service, const ScoreBody& body) {
  engine::EmbeddingRequest request = pairs_request(body.client, body.limits, body.use_activation);
  const std::vector<engine::SharedText> first(body.first.begin(), body.first.end());
  const engine::SharedText instruction = body.instruction;
  for (size_t i = 0; i < body.second.size(); ++i) {
    const engine::SharedText& query = first[first.size() == 1 ? 0 : i];
    request.inputs.emplace_back(engine::TextPair{query, body.second[i], instruction});
  }
  return start(
      service, std::move(request),
      [model = service.model_id()](const std::string& id, const engine::EmbeddingResult& result) {
        std::vector<float> scores;
        for (const auto& vector : result.vectors) scores.push_back(vector.at(0));
        return json_response(
            200, scores_json(cat("score-", id), model, now_seconds(), scores, result.tokens));
      });
}

}  // namespace rbee::server
