#pragma once
// An embedding model as a server sees it: submit texts, receive vectors or scores.
// make_embedding_engine() (embedding/engine.h) implements it.

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

// A text whose copies share memory: it may be as long as a request's body, and thousands of pairs
// of one request may contain it.
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

// What a reranker scores.
struct TextPair {
  SharedText query;
  std::string document;
  SharedText instruction{};  // what counts as an answer; empty = the model's default
};

// A text, tokens, or a pair.
using EmbeddingInput = std::variant<std::string, std::vector<int32_t>, TextPair>;

struct EmbeddingRequest {
  std::string job_id;
  std::string client;                  // clients take turns
  std::vector<EmbeddingInput> inputs;  // all are pairs, or none is
  int64_t dimensions = 0;              // keep this many leading numbers of each vector; 0 = all
  std::optional<bool> normalise;       // vectors of length 1; absent: as the checkpoint says
  // Keep at most this many tokens of a text, special ones included; -1 = as many as the model
  // takes; absent: a longer text is an error. In a pair only the document is cut.
  std::optional<int32_t> truncate;
  bool keeps_last = false;  // keep a text's last tokens, not its first
  bool add_special = true;  // add the model's special tokens around a text
  // Keep at most this many tokens of a pair's texts; 0 = all.
  int32_t query_tokens = 0, document_tokens = 0;
  bool alone = false;  // let a reranker score single texts, as a classifier does
  // The kind of text, which selects the checkpoint's prefix; absent: its default kind. For texts
  // only.
  std::optional<std::string> prompt_name;
  bool probability = true;  // scores through the logistic function, if the checkpoint has it
};

struct EmbeddingResult {
  std::vector<std::vector<float>> vectors;  // one for each input, in order; for a pair, one score
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
  ModelInfo model;                   // context_length: tokens of one text
  int64_t dimensions = 0;            // numbers in a vector
  bool ranks = false;                // a reranker: scores pairs, gives no vectors
  bool instructs = false;            // reads TextPair::instruction
  bool classifies = false;           // scores single texts too
  std::string pooling;               // "mean", "cls" or "last"
  bool normalises = false;           // if a request does not say
  std::vector<std::string> prompts;  // values of prompt_name
};

class EmbeddingEngine {
 public:
  virtual ~EmbeddingEngine() = default;
  virtual const EmbeddingInfo& info() const = 0;
  // Queues the request; thread-safe. Throws invalid_argument for values out of range (the message
  // names field and range), out_of_memory if too many wait, and unsupported if the engine takes no
  // new work.
  virtual void submit(EmbeddingRequest request, std::shared_ptr<EmbeddingSink> sink) = 0;
  // Fails the request with Code::cancelled unless it is done. Thread-safe; false if there is no
  // such request.
  virtual bool cancel(const std::string& job_id) = 0;
  // Sets running, waiting, request counts, prompt_tokens, prompt_seconds, device memory and
  // healthy; the rest is 0.
  virtual EngineStats stats() const = 0;
  virtual std::vector<int32_t> tokenize(std::string_view text,
                                        const TokenizeOptions& options) const = 0;
  virtual std::string detokenize(const std::vector<int32_t>& ids) const = 0;
  virtual std::string token_bytes(int32_t id) const = 0;
  // The tokens of a chat, rendered by the checkpoint's template. Throws invalid_argument if there
  // is no template, or if it rejects the messages.
  virtual std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                           const ChatOptions& options, bool add_special) const = 0;
  // Takes no new work, fails waiting requests, and joins the engine's thread. Idempotent.
  virtual void stop() = 0;
};

}  // namespace rbee::engine
