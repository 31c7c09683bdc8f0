#pragma once

#include "rbee/models/nomic_bert/config.h"
#include "rbee/nn/linear.h"

namespace rbee::models {

// down(act(up(x)))
class NomicMlp {
 public:
  NomicMlp(const nn::WeightScope& layer, const NomicBertConfig& config);

  Tensor operator()(const Tensor& x) const;  // (tokens, dim) both

 private:
  UnaryOp activation_;
  nn::Linear up_, down_;
};

// For each token, the weighted sum of a few of many such networks, by the router's softmax over all
// of them (Nussbaum and Duderstadt 2025, "Training Sparse Mixture Of Experts Text Embedding
// Models"), and one bias.
class NomicExperts {
 public:
  // Takes ffn_up_exps and ffn_down_exps from GGUF files; from Hugging Face w1 and w2, both (experts
  // * ffn_dim, dim).
  NomicExperts(const nn::WeightScope& layer, const NomicBertConfig& config);

  Tensor operator()(const Tensor& x) const;  // (tokens, dim) both

 private:
  UnaryOp activation_;
  int64_t chosen_;
  nn::Linear router_;
  LinearWeights up_, down_;  // (experts, out, in)
  Tensor bias_;              // (dim) or undefined
};

}  // namespace rbee::models
