#pragma once
// The encoder of T5 1.1 (Raffel et al. 2020, section 2.1; Shazeer 2020 for its gated layers) with
// the settings and names of Hugging Face's T5EncoderModel.

#include "backends/api/args_elementwise.h"
#include "rbee/io/json_config.h"
#include "rbee/models/image/parts.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

struct T5TextConfig {
  int64_t vocab_size = 0;
  int64_t width = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;  // heads * head_dim may differ from the width
  int64_t ffn_width = 0;
  int64_t buckets = 32;  // of distances between tokens
  int64_t max_distance = 128;
  float norm_eps = 1e-6f;
  GateOp activation = GateOp::gelu;

  // Throws invalid_argument naming a field and its value, and unsupported for layers without gates.
  static T5TextConfig read(const io::JsonConfig& config);
};

// The bucket of a key's distance from its query, for both directions: near distances have a bucket
// each, far ones share buckets by their logarithm.
int32_t t5_bucket(int64_t distance, int64_t buckets, int64_t max_distance);

class T5TextLayer {
 public:
  T5TextLayer(const nn::WeightScope& scope, const T5TextConfig& config);

  // x: (batch, tokens, width)   bias: (1, heads, tokens, tokens) f32, added to scores
  Tensor operator()(const Tensor& x, const Tensor& bias) const;

 private:
  Tensor attend(const Tensor& x, const Tensor& bias) const;

  int64_t heads_, head_dim_;
  GateOp activation_;
  nn::RmsNorm attention_norm_, mlp_norm_;
  nn::Linear query_, key_, value_, output_, gate_, up_, down_;
};

// Reads padding like any token, as in training. Has no pooled states and no clip_skip: it runs
// every layer.
class T5TextEncoder final : public TextEncoder {
 public:
  // Takes the names of T5EncoderModel. `max_tokens`: how many tokens of a prompt the model reads.
  T5TextEncoder(const nn::WeightScope& scope, const T5TextConfig& config, int64_t max_tokens);

  TextEncoding operator()(const TextInput& input) const override;

  int64_t width() const override { return config_.width; }
  int64_t pooled_width() const override { return 0; }
  int64_t max_tokens() const override { return max_tokens_; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t layers() const override { return config_.layers; }

 private:
  void check_input(const TextInput& input) const;
  Tensor position_bias(int64_t tokens) const;

  T5TextConfig config_;
  int64_t max_tokens_;
  DType activations_;
  Tensor tokens_;     // (vocab, width), as stored
  Tensor distances_;  // (buckets, heads) f32
  std::vector<T5TextLayer> layers_;
  nn::RmsNorm final_norm_;
};

}  // namespace rbee::models
