#pragma once
// A model for embeddings with its tokenizer and settings, and the tokens that it reads.

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
  std::vector<int32_t> prefix, suffix;  // the special tokens that it puts around a text
  models::Pooling pooling = models::Pooling::mean;
  bool probability = true;  // scores of the ranker mean something through the logistic function
  std::map<std::string, std::string> prompts;  // what stands before texts, by their kind
  std::string default_prompt;                  // a name of these; empty = none
  std::optional<RerankPrompt> rerank_prompt;   // absent: pairs are joined as the tokenizer has it
  std::unique_ptr<text::ChatTemplate> chat_template;  // null: the checkpoint has none
  EmbeddingInfo info;

  struct Encoded {
    std::vector<int32_t> ids;
    std::vector<int32_t> segments;  // 1 in the second text of a pair, else 0
  };
  // The tokens of a query that pairs share, for as long as one of them lives.
  struct Query {
    const std::string* text = nullptr;
    std::vector<int32_t> ids;
  };
  // What of an input's tokens is evaluated; see EmbeddingRequest.
  struct Kept {
    std::optional<int32_t> tokens;
    bool last = false;
    bool special = true;
  };
  // Throws invalid_argument for an input without tokens or with more than the model takes, and for
  // ids that it does not have. query: of the pair before, or none; becomes this pair's, where pairs
  // are joined.
  Encoded encode(const EmbeddingInput& input, const Kept& kept, Query& query) const;
  Encoded encode(const EmbeddingInput& input, const Kept& kept) const;
  // The text up to its first so many tokens, 0: all of it.
  std::string shortened(const std::string& text, int32_t tokens) const;
  // See EmbeddingEngine.
  std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                   const ChatOptions& options, bool add_special) const;
  // The text behind the prompt of its kind, absent: of the default kind; tokens and pairs as they
  // are.
  EmbeddingInput prompted(const EmbeddingInput& input,
                          const std::optional<std::string>& prompt_name) const;
};

// True where `path` holds a model for embeddings or ranking, not for text.
bool is_for_embeddings(const std::filesystem::path& path);

// pooling: "auto" as the checkpoint says, "mean", "cls" or "last" in its place, or "rank": a
// decoder without a head for it ranks by how likely it says yes. Throws as load_text_model().
EmbeddingSource load_embedding_source(const std::filesystem::path& path,
                                      const TextModelOptions& options,
                                      std::string_view pooling = "auto");

}  // namespace rbee::engine
