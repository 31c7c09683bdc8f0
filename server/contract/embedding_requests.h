#pragma once
// Bodies of the routes of models for embeddings and for ranking: OpenAI's /v1/embeddings, /rerank
// in the form of Jina, Cohere and vLLM, and vLLM's /score.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/contract/requests.h"

namespace rbee::server {

inline constexpr size_t kMaxEmbeddingInputs = 2048;

// Texts and tokens in a row, llama-server's.
using EmbeddingParts = std::vector<std::variant<std::string, int32_t>>;
// A text, its tokens, or both.
using EmbeddingText = std::variant<std::string, std::vector<int32_t>, EmbeddingParts>;

struct EmbeddingBody {
  std::vector<EmbeddingText> inputs;
  bool base64 = false;              // encoding_format: little-endian f32 as base64, else numbers
  int32_t dimensions = 0;           // 0 = all
  std::optional<bool> normalize;    // vLLM's field
  std::optional<int32_t> truncate;  // truncate_prompt_tokens; -1 = as the model takes
  std::optional<std::string> prompt_name;  // of sentence-transformers
};

// "input": one or a list of strings, lists of token ids and strings, and llama-server's objects
// {"prompt_string"} and {"content": [{"type": "text", "text"}]}. Throws InvalidBody.
EmbeddingBody parse_embeddings(std::string_view body);
// llama-server's POST /embedding: the same under the name "content" (or "input").
EmbeddingBody parse_llama_embedding(std::string_view body);
// Cohere's POST /v2/embed: "texts" and "embedding_types" of float and base64. Throws InvalidBody.
struct CohereEmbedBody {
  EmbeddingBody generic;
  std::vector<std::string> texts;
  bool floats = false, base64 = false;  // one of them at least
};
CohereEmbedBody parse_cohere_embed(std::string_view body);

struct RerankBody {
  std::string query;
  std::vector<std::string> documents;
  std::string instruction;          // of rankers that are asked in words; empty = the usual
  size_t top_n = 0;                 // best ones that are answered; 0 = all
  bool return_documents = true;     // with their texts
  bool tei = false;                 // "texts" and the answer of text-embeddings-inference
  std::optional<int32_t> truncate;  // as above
  bool use_activation = true;       // scores as the model's makers mean them, else plain ones
};

// Documents are strings or objects with "text"; "texts", "raw_scores" and "return_text" are the
// names of text-embeddings-inference. Throws InvalidBody.
RerankBody parse_rerank(std::string_view body);

struct ScoreBody {
  std::vector<std::string> first;  // one for all of the second, or as many
  std::vector<std::string> second;
  std::string instruction;  // as above
  std::optional<int32_t> truncate;
  bool use_activation = true;
};

// "text_1" and "text_2" (or "data_1" and "data_2", or "queries" and "documents"): strings, or
// lists: one with each of the other, or two of one length.
// Throws InvalidBody.
ScoreBody parse_score(std::string_view body);

}  // namespace rbee::server
