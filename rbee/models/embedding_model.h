#pragma once
// Models that turn a text into one vector, or a pair of texts into a score: encoders like BERT, and
// decoders read after their last layer.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/models/language_model.h"

namespace rbee::models {

// Which states become a text's vector.
enum class Pooling : uint8_t {
  mean,  // of all its tokens
  cls,   // of its first one
  last,  // of its last one
};
std::string_view name(Pooling pooling);
// "mean", "cls" or "last"; throws invalid_argument for another.
Pooling parse_pooling(std::string_view text);

// Tokens of texts, one text after another.
struct TextBatch {
  std::vector<int32_t> ids;       // below vocab_size
  std::vector<int32_t> segments;  // of each id: 1 in the second text of a pair, else 0
  std::vector<int64_t> lengths;   // ids of each text, from 1 to max_tokens()
};

class EmbeddingModel {
 public:
  virtual ~EmbeddingModel() = default;

  virtual const ModelConfig& config() const = 0;
  virtual int64_t max_tokens() const = 0;                      // of a text
  virtual int64_t dimensions() const { return config().dim; }  // of a text's vector
  // (texts, dimensions) f32. Batches are cheapest if texts of one length are neighbours.
  virtual Tensor embed(const TextBatch& texts, Pooling pooling) = 0;
  // Whether the model has a head that scores a pair of texts (a cross-encoder). The head reads the
  // first token's state.
  virtual bool ranks() const { return false; }
  // (texts) f32: a score of each pair, any number. Call it only if ranks().
  virtual Tensor rank(const TextBatch& pairs) = 0;
  // The second text of a pair has two separators before it (RoBERTa), else one (BERT).
  virtual bool doubles_separator() const { return false; }

  virtual DType activations() const = 0;
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t parameters() const = 0;
  virtual std::string quantization() const = 0;
};

// What a checkpoint says about its use: modules.json and the folders it names
// (sentence-transformers), or the pooling_type of a GGUF file. Throws unsupported naming what is
// not implemented, and invalid_argument for broken files.
struct DenseModule {
  // A folder beside the weights, with config.json and model.safetensors; empty = a tensor of the
  // same file.
  std::string folder;
  std::string tensor = "linear";  // its name without ".weight"
  int64_t in = 0;                 // dimensions of a vector
  int64_t out = 0;
  bool bias = true;
  bool tanh = true;  // of the result; else the result as it is
};
// The tokens whose logits are a decoder's score of a pair.
struct RankWords {
  int32_t yes = 0;
  std::optional<int32_t> no;  // the score is yes's logit minus no's; absent: yes's logit
};
struct EmbeddingSettings {
  Pooling pooling = Pooling::mean;
  std::vector<DenseModule> dense;  // after the pooling, in order
  bool normalise = true;           // vectors have length 1
  int64_t max_tokens = 0;          // of a text; 0 = not said
  // The prompt before texts of a kind, by the kind's name ("query").
  std::map<std::string, std::string> prompts;
  std::string default_prompt;      // the name of one of them; empty = none
  bool ranks = false;              // the files say so; else the weights decide
  std::optional<RankWords> words;  // of a decoder that ranks
  // The template of a pair's prompt, with {query}, {document} and perhaps {instruction}; empty =
  // the tokenizer joins the pair.
  std::string pair_template;
};
EmbeddingSettings read_embedding_settings(const io::Checkpoint& checkpoint);

// True for encoders, and for decoders whose files say that they are for embeddings.
bool makes_embeddings(const io::Checkpoint& checkpoint);
// Whether only embedding models have this architecture.
bool is_encoder(std::string_view architecture);

// Takes decoders too, whatever their files say. options.context: tokens of a text; 0 = all
// positions of an encoder, at most 4096 of a decoder. words: the tokens by which a decoder without
// a head ranks. Throws as load_language_model().
std::unique_ptr<EmbeddingModel> load_embedding_model(
    const io::Checkpoint& checkpoint, const LoadOptions& options,
    const std::optional<RankWords>& words = std::nullopt);

// states: (tokens, dim), texts one after another; result: (texts, dim) f32
Tensor pool(const Tensor& states, std::span<const int64_t> lengths, Pooling pooling);
// The row of each text's pooled token. Pooling::mean has none.
std::vector<int32_t> pooled_rows(std::span<const int64_t> lengths, Pooling pooling);

}  // namespace rbee::models
