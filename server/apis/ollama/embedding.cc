#include "server/apis/ollama/embedding.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/refusals.h"
#include "server/apis/ollama/request.h"
#include "server/apis/ollama/response.h"
#include "server/wire/json_text.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

OllamaModel model_of(const EmbeddingService& service) {
  OllamaModel out = ollama_model(service, service.model().model);
  out.dimensions = service.model().dimensions;
  if (!service.model().ranks) out.capabilities = {"embedding"};
  return out;
}

engine::EmbeddingRequest request_of(const OllamaEmbedBody& body, const Request& request) {
  engine::EmbeddingRequest out{.client = request.sender(),
                               .inputs = {},
                               .dimensions = body.generic.dimensions,
                               .normalise = body.generic.normalize,
                               .truncate = body.generic.truncate,
                               .prompt_name = {}};
  for (const EmbeddingText& input : body.generic.inputs) {
    out.inputs.emplace_back(std::get<std::string>(input));
  }
  return out;
}

std::string failure_body(const WireError&, std::string_view message) {
  return ollama_error_json(message);
}

using Vectors = std::vector<std::vector<float>>;

std::string embed_json(const OllamaEmbedBody& body, const Vectors& vectors, int64_t tokens,
                       Clock::time_point arrival) {
  const std::chrono::duration<double, std::milli> taken = Clock::now() - arrival;
  return dump({{"model", body.model},
               {"embeddings", vectors},
               {"total_duration", nanoseconds(taken.count())},
               {"load_duration", 0},
               {"prompt_eval_count", tokens}});
}

std::string embeddings_json(const OllamaEmbedBody&, const Vectors& vectors, int64_t,
                            Clock::time_point) {
  const std::vector<float> none;
  return dump({{"embedding", vectors.empty() ? none : vectors.front()}});
}

const Vectors kNothing;  // g++ 12 rejects {} in its place below

// kAnswer: the body of the answer from vectors and their number of tokens.
template <OllamaEmbedBody (*kParse)(std::string_view),
          std::string (*kAnswer)(const OllamaEmbedBody&, const Vectors&, int64_t,
                                 Clock::time_point)>
Response embed(EmbeddingService& service, const Request& request) {
  return guarded(ollama_error, [&] {
    const Clock::time_point arrival = Clock::now();
    OllamaEmbedBody body = kParse(request.body);
    if (!model_of(service).find_for(request, body.model)) return no_ollama_model(body.model);
    if (body.generic.inputs.empty()) return json_response(200, kAnswer(body, kNothing, 0, arrival));
    Response out;
    engine::EmbeddingRequest asked = request_of(body, request);
    out.later = service.start(
        std::move(asked),
        [body = std::move(body), arrival](const std::string&, const engine::EmbeddingResult& got) {
          return json_response(200, kAnswer(body, got.vectors, got.tokens, arrival));
        },
        failure_body);
    return out;
  });
}

template <const char* kWhat>
Response refuse(EmbeddingService& service, const Request&) {
  const std::string message = cat("\"", service.model_id(), "\" does not support ", kWhat);
  return json_response(400, ollama_error_json(message));
}

constexpr char kGenerate[] = "generate", kChat[] = "chat";

constexpr EmbeddingRoute kRoutes[] = {
    {"POST", "/api/embed", embed<parse_ollama_embed, embed_json>, Body::any, ErrorForm::ollama},
    {"POST", "/api/embeddings", embed<parse_ollama_embeddings, embeddings_json>, Body::any,
     ErrorForm::ollama},
};

constexpr EmbeddingRoute kTextRefusals[] = {
    {"POST", "/api/generate", refuse<kGenerate>, Body::any, ErrorForm::ollama},
    {"POST", "/api/chat", refuse<kChat>, Body::any, ErrorForm::ollama},
};

constexpr auto kModelRoutes = ollama_model_routes<EmbeddingService, model_of>();
constexpr auto kRefusals = ollama_refusal_routes<EmbeddingService>();
constexpr auto kAboutModels = [] {
  std::array<EmbeddingRoute, kModelRoutes.size() + kRefusals.size()> out{};
  std::ranges::copy(kModelRoutes, out.begin());
  std::ranges::copy(kRefusals, out.begin() + kModelRoutes.size());
  return out;
}();

}  // namespace

std::span<const EmbeddingRoute> ollama_embedding_routes() {
  return kRoutes;
}

std::span<const EmbeddingRoute> ollama_embedding_model_routes() {
  return kAboutModels;
}

std::span<const EmbeddingRoute> ollama_text_refusals() {
  return kTextRefusals;
}

}  // namespace rbee::server
