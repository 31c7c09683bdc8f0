#pragma once
// Answers of embedding and reranking models, as JSON on one line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/apis/embeddings/request.h"

namespace rbee::server {

// OpenAI's list. Either vectors or base64 has an entry for each input: numbers, or their bytes.
struct EmbeddingAnswer {
  std::string id;
  std::string_view object = "embedding";  // of each entry; vLLM's is "pooling"
  int64_t created = 0;                    // seconds since 1970
  std::string model;
  std::vector<std::vector<float>> vectors;
  std::vector<std::string> base64;
  int64_t tokens = 0;
  std::vector<std::vector<int8_t>> bytes = {};  // Cohere's int8
  std::vector<std::vector<uint8_t>> bits = {};  // Cohere's ubinary
};
std::string embeddings_json(const EmbeddingAnswer& answer);
// llama-server's [{"index","embedding":[[...]]}].
std::string llama_embeddings_json(const EmbeddingAnswer& answer);
// text-embeddings-inference's [[...],...].
std::string tei_embeddings_json(const std::vector<std::vector<float>>& vectors);
// Cohere's {"id","texts","embeddings":{"float":[...],"base64":[...]},"meta"}, with the requested
// types.
std::string cohere_embeddings_json(const EmbeddingAnswer& answer, const CohereEmbedBody& asked);
// vLLM's {"id","created","model","data":[{"index","embed_dtype","endianness","start","end",
// "shape"}],"usage"} for vectors stored as contiguous bytes, `bytes` for each.
std::string vector_places_json(const EmbeddingAnswer& answer, const VectorEncoding& encoding,
                               size_t bytes);
// vLLM's {"id","object","created","model","data":[{"index","label","probs","num_classes"}],"usage"}
// for yes-or-no models.
std::string classes_json(const EmbeddingAnswer& answer);

struct RankedDocument {
  size_t index = 0;  // in the request
  float score = 0;
  std::optional<std::string> text;
};
// {"id","object","model","results":[{"index","relevance_score","document":{"text"}}],"usage"}
std::string rerank_json(std::string_view id, std::string_view model,
                        const std::vector<RankedDocument>& documents, int64_t tokens);
// text-embeddings-inference's [{"index","score","text"}].
std::string tei_rerank_json(const std::vector<RankedDocument>& documents);
// vLLM's {"id","object","created","model","data":[{"index","object","score"}],"usage"}
std::string scores_json(std::string_view id, std::string_view model, int64_t created,
                        const std::vector<float>& scores, int64_t tokens);

}  // namespace rbee::server
