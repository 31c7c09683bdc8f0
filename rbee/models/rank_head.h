#pragma once
// What makes a score of a pair's state.

#include "rbee/models/embedding_model.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

struct RankHeadSpec {
  int64_t dim = 0;
  UnaryOp activation = UnaryOp::tanh;  // of the layer before the last, where there is one
  float norm_eps = 1e-5f;              // of the norm behind that, where there is one
};

// A row for the score, behind a layer with an activation and a norm where the checkpoint has them;
// or, in GGUF files of models that say yes or no, a row for each word, whose difference is the
// score.
class RankHead {
 public:
  // Whether the checkpoint has one.
  static bool in(const io::Checkpoint& checkpoint);
  // Its parts in this checkpoint under their GGUF names, without ".weight".
  static std::vector<std::pair<std::string_view, std::string_view>> tensor_names(
      const io::Checkpoint& checkpoint);
  // Keeps a reference to the checkpoint. Throws unsupported for a classifier of other labels.
  RankHead(const io::Checkpoint& checkpoint, const LoadOptions& options, const RankHeadSpec& spec);
  // Of a decoder without one: rows of its output matrix. names: the family's, outliving the head.
  // Throws invalid_argument for words outside of the vocabulary.
  RankHead(const io::Checkpoint& checkpoint, const LoadOptions& options,
           std::span<const nn::TensorName> names, const ModelConfig& config,
           const RankWords& words);

  // states: (texts, dim) as the options' activations   result: (texts) f32
  Tensor operator()(const Tensor& states) const;
  const nn::WeightFigures& figures() const { return weights_.figures(); }

 private:
  nn::WeightScope weights_;
  RankHeadSpec spec_;
  std::optional<nn::Linear> dense_;
  std::optional<nn::LayerNorm> norm_;
  nn::Linear output_;
  std::optional<nn::Linear> against_;  // what "no" has for it, to be subtracted
};

}  // namespace rbee::models
