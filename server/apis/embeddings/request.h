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

#include "server/wire/generate_request.h"

namespace rbee::server {

inline constexpr size_t kMaxEmbeddingInputs = 2048;

// Texts and tokens in a row, llama-server's.
using EmbeddingParts = std::vector<std::variant<std::string, int32_t>>;
// A text, its tokens, or both.
using EmbeddingText = std::variant<std::string, std::vector<int32_t>, EmbeddingParts>;

// How vectors are written: "encoding_format", and of all but numbers "embed_dtype" and
// "endianness".
enum class VectorFormat : uint8_t { numbers, base64, bytes, bytes_only };
enum class VectorType : uint8_t { f32, f16, bf16, f8e4m3, f8e5m2 };
struct VectorEncoding {
  VectorFormat format = VectorFormat::numbers;
  VectorType type = VectorType::f32;
  bool big_endian = false;
};

struct EmbeddingBody {
  std::string client;  // who asks; no field of a body
  std::vector<EmbeddingText> inputs;
  std::vector<SentMessage> messages;  // a chat, in the place of inputs
  ChatFields chat;                    // of these
  bool add_special = true;            // the tokens around texts that the model wants
  VectorEncoding encoding;
  int32_t dimensions = 0;                  // 0 = all
  std::optional<bool> normalize;           // vLLM's field, of a ranker its use_activation
  std::optional<int32_t> truncate;         // truncate_prompt_tokens; -1 = as the model takes
  bool keeps_last = false;                 // these are the last ones
  std::optional<std::string> prompt_name;  // of sentence-transformers
  std::string task;                        // vLLM's, of /pooling; empty: the model's own
};

// "input": one or a list of strings, lists of token ids and strings, and llama-server's objects
// {"prompt_string"} and {"content": [{"type": "text", "text"}]}; or "messages", a chat. Throws
// InvalidBody.
EmbeddingBody parse_embeddings(std::string_view body);
// vLLM's POST /pooling and /classify: the same, and "task".
EmbeddingBody parse_pooling(std::string_view body);
// llama-server's POST /embedding: the same under the name "content" (or "input").
EmbeddingBody parse_llama_embedding(std::string_view body);
// text-embeddings-inference's POST /embed: "inputs", "normalize", "truncate" and others. Throws
// InvalidBody.
EmbeddingBody parse_tei_embed(std::string_view body);
// Cohere's POST /v2/embed: "texts" and "embedding_types". Throws InvalidBody.
struct CohereEmbedBody {
  EmbeddingBody generic;
  std::vector<std::string> texts;
  std::string input_type;  // what the texts are for; empty: not said
  // Of embedding_types one at least. Of the last two each bit is whether a number is 0 or above.
  bool floats = false, base64 = false, int8 = false, uint8 = false, binary = false, ubinary = false;
};
CohereEmbedBody parse_cohere_embed(std::string_view body);

// Tokens of pairs that are kept at most.
struct PairLimits {
  std::optional<int32_t> truncate;  // of both, as above
  int32_t query = 0, document = 0;  // max_tokens_per_query and max_tokens_per_doc; 0 = all
};

struct RerankBody {
  std::string client;  // who asks; no field of a body
  std::string query;
  std::vector<std::string> documents;
  std::string instruction;       // of rankers that are asked in words; empty = the usual
  size_t top_n = 0;              // best ones that are answered; 0 = all
  bool return_documents = true;  // with their texts
  bool tei = false;              // "texts" and the answer of text-embeddings-inference
  PairLimits limits;
  bool use_activation = true;  // scores as the model's makers mean them, else plain ones
};

// Documents are strings or objects with "text"; "texts", "raw_scores" and "return_text" are the
// names of text-embeddings-inference. Throws InvalidBody.
RerankBody parse_rerank(std::string_view body);

struct ScoreBody {
  std::string client;              // who asks; no field of a body
  std::vector<std::string> first;  // one for all of the second, or as many
  std::vector<std::string> second;
  std::string instruction;  // as above
  PairLimits limits;
  bool use_activation = true;
};

// "text_1" and "text_2" (or "data_1" and "data_2", or "queries" and "documents" or "items"):
// strings, or lists: one with each of the other, or two of one length. Throws InvalidBody.
ScoreBody parse_score(std::string_view body);

// What a body of SageMaker's POST /invocations asks for, by the names that it has.
enum class Invocation : uint8_t { embeddings, rerank, score };
// Throws InvalidBody for a body that has none of them.
Invocation parse_invocation(std::string_view body);

}  // namespace rbee::server
