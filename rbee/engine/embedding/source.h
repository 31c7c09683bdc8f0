#pragma once
// An embedding model with its tokenizer and settings; turns inputs into tokens.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rbee/engine/api/embedding.h"
#include "rbee/engine/embedding/rerank_prompt.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/models/embedding_model.h"

namespace rbee::engine {

struct EmbeddingSource {
  Device* device = nullptr;
  std::unique_ptr<models::EmbeddingModel> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::vector<int32_t> prefix, suffix;  // special tokens around a text
  models::Pooling pooling = models::Pooling::mean;
  bool probability = true;  // the reranker's scores go through the logistic function
  std::map<std::string, std::string> prompts;         // prefix of a text, by kind of text
  std::string default_prompt;                         // one of these kinds; empty = none
  std::optional<RerankPrompt> rerank_prompt;          // absent: the tokenizer joins pairs
  std::unique_ptr<text::ChatTemplate> chat_template;  // null: the checkpoint has none
  EmbeddingInfo info;

  struct Encoded {
    std::vector<int32_t> ids;
    std::vector<int32_t> segments;  // 1 in the second text of a pair, else 0
  };
  // The tokens of a query, for successive pairs that share it.
  struct Query {
    const std::string* text = nullptr;
    std::vector<int32_t> ids;
  };
  // Which tokens of an input are evaluated; see EmbeddingRequest.
  struct Kept {
    std::optional<int32_t> tokens;
    bool last = false;
    bool special = true;
  };
  // Throws invalid_argument for an input without tokens or with more than the model takes, and for
  // unknown ids. query: the previous pair's, or empty; set to this pair's if the model joins pairs.
  Encoded encode(const EmbeddingInput& input, const Kept& kept, Query& query) const;
  Encoded encode(const EmbeddingInput& input, const Kept& kept) const;
  // The text up to this many tokens; 0: all of it.
  std::string shortened(const std::string& text, int32_t tokens) const;
  // See EmbeddingEngine.
  std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                   const ChatOptions& options, bool add_special) const;
  // Puts the prefix of the given kind before a text; absent: the default kind's. Tokens and pairs
  // do not change.
  EmbeddingInput prompted(const EmbeddingInput& input,
                          const std::optional<std::string>& prompt_name) const;
};

// True if `path` holds a model for embeddings or reranking, not for text generation.
bool is_for_embeddings(const std::filesystem::path& path);

// pooling: "auto" as the checkpoint says; "mean", "cls" or "last" override it; "rank": a decoder
// without a scoring head ranks by the probability of "yes". Throws as load_text_model().
EmbeddingSource load_embedding_source(const std::filesystem::path& path,
                                      const TextModelOptions& options,
                                      std::string_view pooling = "auto");

}  // namespace rbee::engine
