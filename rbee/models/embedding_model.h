#pragma once
// Models that turn a text into one vector, or a pair of texts into a score: encoders of the BERT
// kind, and decoders read behind their last layer.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/models/language_model.h"

namespace rbee::models {

// Which states make a text's vector.
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
  // (texts, dimensions) f32. Neighbours of one length are cheapest.
  virtual Tensor embed(const TextBatch& texts, Pooling pooling) = 0;
  // Whether there is a head that judges a pair of texts (a cross-encoder), whose states are the
  // first token's.
  virtual bool ranks() const { return false; }
  // (texts) f32: how well the pairs fit, any number. Only where ranks().
  virtual Tensor rank(const TextBatch& pairs) = 0;
  // The second text of a pair has two separators before it (RoBERTa), else one (BERT).
  virtual bool doubles_separator() const { return false; }

  virtual DType activations() const = 0;
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t parameters() const = 0;
  virtual std::string quantization() const = 0;
};

// What a checkpoint says about its use: modules.json and the folders it names (sentence-
// transformers), or the pooling_type of a GGUF file. Throws unsupported naming what is not
// implemented, and invalid_argument for files that are broken.
struct DenseModule {
  // Beside the weights: with config.json and model.safetensors; empty = a tensor of the same file.
  std::string folder;
  std::string tensor = "linear";  // its name without ".weight"
  int64_t in = 0;                 // dimensions of a vector
  int64_t out = 0;
  bool bias = true;
  bool tanh = true;  // of the result; else the result as it is
};
// Tokens by which a decoder says how well a pair fits.
struct RankWords {
  int32_t yes = 0;
  std::optional<int32_t> no;  // the score is how much likelier the first is; absent: its logit
};
struct EmbeddingSettings {
  Pooling pooling = Pooling::mean;
  std::vector<DenseModule> dense;  // behind the pooling, in order
  bool normalise = true;           // vectors have length 1
  int64_t max_tokens = 0;          // of a text; 0 = not said
  // What stands before texts of a kind, by the kind's name ("query").
  std::map<std::string, std::string> prompts;
  std::string default_prompt;      // the name of one of them; empty = none
  bool ranks = false;              // the files say so; else what the weights have decides
  std::optional<RankWords> words;  // of a decoder that ranks
  // How a pair is asked about, with {query}, {document} and perhaps {instruction}; empty = as the
  // tokenizer joins pairs.
  std::string pair_template;
};
EmbeddingSettings read_embedding_settings(const io::Checkpoint& checkpoint);

// True for encoders, and for decoders whose files say that they are for embeddings.
bool makes_embeddings(const io::Checkpoint& checkpoint);
// An architecture that this file's models alone have.
bool is_encoder(std::string_view architecture);

// Takes decoders too, whatever their files say. options.context: tokens of a text; 0 = all that an
// encoder has positions for, of a decoder 4096 at most. words: what a decoder ranks by where it has
// no head for that. Throws as load_language_model().
std::unique_ptr<EmbeddingModel> load_embedding_model(
    const io::Checkpoint& checkpoint, const LoadOptions& options,
    const std::optional<RankWords>& words = std::nullopt);

// states: (tokens, dim), texts one after another; result: (texts, dim) f32
Tensor pool(const Tensor& states, std::span<const int64_t> lengths, Pooling pooling);
// Rows of the token that stands for each text; not for Pooling::mean.
std::vector<int32_t> pooled_rows(std::span<const int64_t> lengths, Pooling pooling);

}  // namespace rbee::models
