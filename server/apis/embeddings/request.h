#pragma once
// Request bodies for embedding and reranking models: OpenAI's /v1/embeddings, /rerank in the form
// of Jina, Cohere and vLLM, and vLLM's /score.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/wire/generate_request.h"

namespace rbee::server {

inline constexpr size_t kMaxEmbeddingInputs = 2048;

// Texts and tokens in sequence, llama-server's.
using EmbeddingParts = std::vector<std::variant<std::string, int32_t>>;
// A text, its tokens, or both.
using EmbeddingText = std::variant<std::string, std::vector<int32_t>, EmbeddingParts>;

// The form of vectors: "encoding_format", and except for numbers "embed_dtype" and "endianness".
enum class VectorFormat : uint8_t { numbers, base64, bytes, bytes_only };
enum class VectorType : uint8_t { f32, f16, bf16, f8e4m3, f8e5m2 };
struct VectorEncoding {
  VectorFormat format = VectorFormat::numbers;
  VectorType type = VectorType::f32;
  bool big_endian = false;
};

struct EmbeddingBody {
  std::string client;  // the sender; no field of a body
  std::vector<EmbeddingText> inputs;
  std::vector<SentMessage> messages;  // a chat, in place of inputs
  ChatFields chat;                    // for the chat
  bool add_special = true;            // add the model's special tokens around texts
  VectorEncoding encoding;
  int32_t dimensions = 0;           // 0 = all
  std::optional<bool> normalize;    // vLLM's field; for a reranker its use_activation
  std::optional<int32_t> truncate;  // truncate_prompt_tokens; -1 = as many as the model takes
  bool keeps_last = false;          // keep the last tokens
  std::optional<std::string> prompt_name;  // sentence-transformers' field
  std::string task;                        // vLLM's field for /pooling; empty: the model's own
};

// "input": a string, or a list of strings, lists of token ids and strings, or llama-server's
// objects {"prompt_string"} and {"content": [{"type": "text", "text"}]}; or "messages", a chat.
// Throws InvalidBody.
EmbeddingBody parse_embeddings(std::string_view body);
// vLLM's POST /pooling and /classify: the same, and "task".
EmbeddingBody parse_pooling(std::string_view body);
// llama-server's POST /embedding: the same, with the name "content" (or "input").
EmbeddingBody parse_llama_embedding(std::string_view body);
// text-embeddings-inference's POST /embed: "inputs", "normalize", "truncate" and others. Throws
// InvalidBody.
EmbeddingBody parse_tei_embed(std::string_view body);
// Cohere's POST /v2/embed: "texts" and "embedding_types". Throws InvalidBody.
struct CohereEmbedBody {
  EmbeddingBody generic;
  std::vector<std::string> texts;
  std::string input_type;  // the purpose of the texts; empty: not given
  // embedding_types, at least one. In the last two, each bit says whether a number is 0 or above.
  bool floats = false, base64 = false, int8 = false, uint8 = false, binary = false, ubinary = false;
};
CohereEmbedBody parse_cohere_embed(std::string_view body);

// How many tokens of a pair to keep.
struct PairLimits {
  std::optional<int32_t> truncate;  // of both, as above
  int32_t query = 0, document = 0;  // max_tokens_per_query and max_tokens_per_doc; 0 = all
};

struct RerankBody {
  std::string client;  // the sender; no field of a body
  std::string query;
  std::vector<std::string> documents;
  std::string instruction;       // for rerankers with a prompt; empty = the default
  size_t top_n = 0;              // return this many of the best; 0 = all
  bool return_documents = true;  // return their texts
  bool tei = false;              // "texts", and the answer of text-embeddings-inference
  PairLimits limits;
  bool use_activation = true;  // the model's usual scores, not raw ones
};

// Documents are strings or objects with "text"; "texts", "raw_scores" and "return_text" are
// text-embeddings-inference's names. Throws InvalidBody.
RerankBody parse_rerank(std::string_view body);

struct ScoreBody {
  std::string client;              // the sender; no field of a body
  std::vector<std::string> first;  // one for all of the second, or as many
  std::vector<std::string> second;
  std::string instruction;  // as above
  PairLimits limits;
  bool use_activation = true;
};

// "text_1" and "text_2" (or "data_1" and "data_2", or "queries" and "documents" or "items"):
// strings or lists. One of them is paired with each of the other, or both have the same length.
// Throws InvalidBody.
ScoreBody parse_score(std::string_view body);

// The kind of a SageMaker POST /invocations body, by its field names.
enum class Invocation : uint8_t { embeddings, rerank, score };
// Throws InvalidBody for a body without any of them.
Invocation parse_invocation(std::string_view body);

}  // namespace rbee::server
