#pragma once
// What a server sees of a model for embeddings: submit texts, receive vectors or scores.
// Implemented by make_embedding_engine() (embedding_engine.h).

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rbee/engine/api/text.h"

namespace rbee::engine {

// A text that many pairs have: copies share it. It may be as long as a body, and a request has
// thousands of pairs.
class SharedText {
 public:
  SharedText() : SharedText(std::string()) {}
  template <std::convertible_to<std::string> T>
  SharedText(T&& text) {  // NOLINT(google-explicit-constructor): any text is one
    std::string own = std::forward<T>(text);
    text_ = std::make_shared<const std::string>(std::move(own));
  }
  const std::string& text() const { return *text_; }

 private:
  std::shared_ptr<const std::string> text_;
};

// What a ranker judges.
struct TextPair {
  SharedText query;
  std::string document;
  SharedText instruction{};  // what counts as an answer; empty = the usual of the model
};

// A text, its tokens as they are, or a pair.
using EmbeddingInput = std::variant<std::string, std::vector<int32_t>, TextPair>;

struct EmbeddingRequest {
  std::string job_id;
  std::string client;                  // who asks: clients take turns
  std::vector<EmbeddingInput> inputs;  // all pairs, or none
  int64_t dimensions = 0;              // leading numbers of each vector that are kept; 0 = all
  std::optional<bool> normalise;       // vectors of length 1; absent: as the checkpoint says
  // Tokens kept of a longer text, specials included; -1 = as many as the model takes, absent: a
  // longer text is an error. Of pairs the document is cut.
  std::optional<int32_t> truncate;
  bool keeps_last = false;  // these are a text's last tokens, not its first
  bool add_special = true;  // texts have the tokens around them that the model wants
  // Tokens of a pair's texts that are kept at most; 0 = all.
  int32_t query_tokens = 0, document_tokens = 0;
  bool alone = false;  // of a ranker: texts are judged by themselves, as a classifier does
  // What the checkpoint puts before texts of this kind; absent: its default kind's. Of texts alone.
  std::optional<std::string> prompt_name;
  bool probability = true;  // scores through the logistic function, where the checkpoint has it
};

struct EmbeddingResult {
  std::vector<std::vector<float>> vectors;  // of each input, in order; of pairs one score each
  int64_t tokens = 0;                       // of all inputs
};

// Called once, on the engine's thread; must return at once and must not throw.
class EmbeddingSink {
 public:
  virtual ~EmbeddingSink() = default;
  virtual void on_embedded(EmbeddingResult result) noexcept = 0;
  virtual void on_failed(const Failed& failed) noexcept = 0;
};

struct EmbeddingInfo {
  ModelInfo model;                   // context_length: tokens of a text
  int64_t dimensions = 0;            // numbers of a vector
  bool ranks = false;                // judges pairs, and gives no vectors
  bool instructs = false;            // reads TextPair::instruction
  bool classifies = false;           // judges texts by themselves too
  std::string pooling;               // "mean", "cls" or "last"
  bool normalises = false;           // where a request does not say
  std::vector<std::string> prompts;  // the kinds of texts that prompt_name may say
};

class EmbeddingEngine {
 public:
  virtual ~EmbeddingEngine() = default;
  virtual const EmbeddingInfo& info() const = 0;
  // Queues the request; thread-safe. Throws invalid_argument for values out of range (the message
  // names field and range), out_of_memory when too many wait, and unsupported when no new work is
  // taken.
  virtual void submit(EmbeddingRequest request, std::shared_ptr<EmbeddingSink> sink) = 0;
  // The request fails with Code::cancelled, unless it is done. Thread-safe; false when there is no
  // such request.
  virtual bool cancel(const std::string& job_id) = 0;
  // running, waiting, counts of requests, prompt_tokens, prompt_seconds, device memory and healthy;
  // the rest is 0.
  virtual EngineStats stats() const = 0;
  virtual std::vector<int32_t> tokenize(std::string_view text,
                                        const TokenizeOptions& options) const = 0;
  virtual std::string detokenize(const std::vector<int32_t>& ids) const = 0;
  virtual std::string token_bytes(int32_t id) const = 0;
  // The tokens of a chat, as the checkpoint's template writes it. Throws invalid_argument where
  // there is no template, and for messages that it does not take.
  virtual std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                           const ChatOptions& options, bool add_special) const = 0;
  // Takes no new work, fails what waits, and joins the engine's thread. Idempotent.
  virtual void stop() = 0;
};

}  // namespace rbee::engine
