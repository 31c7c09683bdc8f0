#pragma once
// Ranking heads: they turn a pair's state into a score.

#include "rbee/models/embedding_model.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

struct RankHeadSpec {
  int64_t dim = 0;
  UnaryOp activation = UnaryOp::tanh;  // of the layer before the last, if there is one
  float norm_eps = 1e-5f;              // of the norm after that, if there is one
};

// One row for the score, after a layer with an activation and a norm if the checkpoint has them.
// Or, in GGUF files of models that answer yes or no, a row for each word: the score is their
// difference.
class RankHead {
 public:
  // Whether the checkpoint has a ranking head.
  static bool in(const io::Checkpoint& checkpoint);
  // The head's tensors in this checkpoint under their GGUF names, without ".weight".
  static std::vector<std::pair<std::string_view, std::string_view>> tensor_names(
      const io::Checkpoint& checkpoint);
  // Keeps a reference to the checkpoint. Throws unsupported for a classifier with other labels.
  RankHead(const io::Checkpoint& checkpoint, const LoadOptions& options, const RankHeadSpec& spec);
  // For a decoder without a head: takes rows of its output matrix. names: the family's, which must
  // outlive the head. Throws invalid_argument for words outside the vocabulary.
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
  std::optional<nn::Linear> against_;  // the row of "no", which is subtracted
};

}  // namespace rbee::models
