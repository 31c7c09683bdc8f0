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

// A text, or its tokens.
using EmbeddingText = std::variant<std::string, std::vector<int32_t>>;

struct EmbeddingBody {
  std::vector<EmbeddingText> inputs;
  bool base64 = false;              // encoding_format: little-endian f32 as base64, else numbers
  int32_t dimensions = 0;           // 0 = all
  std::optional<bool> normalize;    // vLLM's field
  std::optional<int32_t> truncate;  // truncate_prompt_tokens; -1 = as the model takes
  std::optional<std::string> prompt_name;  // of sentence-transformers
};

// "input": a string, a list of strings, token ids, or a list of lists of ids. Throws InvalidBody.
EmbeddingBody parse_embeddings(std::string_view body);

struct RerankBody {
  std::string query;
  std::vector<std::string> documents;
  std::string instruction;          // of rankers that are asked in words; empty = the usual
  size_t top_n = 0;                 // best ones that are answered; 0 = all
  bool return_documents = true;     // with their texts
  std::optional<int32_t> truncate;  // as above
  bool use_activation = true;       // scores as the model's makers mean them, else plain ones
};

// Documents are strings or objects with "text". Throws InvalidBody.
RerankBody parse_rerank(std::string_view body);

struct ScoreBody {
  std::vector<std::string> first;  // one for all of the second, or as many
  std::vector<std::string> second;
  std::string instruction;  // as above
  std::optional<int32_t> truncate;
  bool use_activation = true;
};

// "text_1" and "text_2": strings, or lists: one with each of the other, or two of one length.
// Throws InvalidBody.
ScoreBody parse_score(std::string_view body);

}  // namespace rbee::server
