#pragma once
// The parts that encoders like BERT share: embeddings of words, positions and segments, their norm,
// the layers, and a ranking head if the checkpoint has one.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rbee/models/embedding_model.h"
#include "rbee/models/rank_head.h"
#include "rbee/nn/embedding.h"
#include "rbee/nn/norm.h"
#include "rbee/nn/text_attention.h"

namespace rbee::models {

// What all layers of one pass share.
struct EncoderStep {
  std::span<const nn::TextRun> runs;
  const Tensor& places;  // (tokens) i32, position of each token in its text, from first_place on
};

class EncoderLayer {
 public:
  virtual ~EncoderLayer() = default;
  // x: (tokens, dim), and so the result
  virtual Tensor operator()(const Tensor& x, const EncoderStep& step) const = 0;
};

struct EncoderSpec {
  ModelConfig config;
  std::span<const nn::TensorName> names;      // must outlive the model
  std::span<const std::string_view> ignored;  // the same
  bool place_table = true;  // "position_embd" has a row for each position; else layers rotate
  int64_t first_place = 0;  // row of that table for a text's first token
  int64_t segments = 0;     // rows of "token_types"
  bool doubles_separator = false;
  std::function<std::unique_ptr<const EncoderLayer>(const nn::WeightScope& layer)> layer;
};

// Takes token_embd, position_embd, token_types, token_embd_norm and the layers. options.context: at
// most the config's. Throws as load_embedding_model().
std::unique_ptr<EmbeddingModel> load_encoder(const io::Checkpoint& checkpoint,
                                             const LoadOptions& options, const EncoderSpec& spec);

// Positions that a text may have: the options' context, or all. Throws invalid_argument if the
// context is larger.
int64_t text_positions(const ModelConfig& config, const LoadOptions& options);

}  // namespace rbee::models
