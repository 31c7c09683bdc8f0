#pragma once
// CLIP's text encoder (Radford et al. 2021, section 2.4) with the settings and names of Hugging
// Face's CLIPTextModel and CLIPTextModelWithProjection; OpenCLIP's encoders have the same shape.

#include <optional>

#include "backends/api/args_elementwise.h"
#include "rbee/io/json_config.h"
#include "rbee/models/image/parts.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

struct ClipTextConfig {
  int64_t vocab_size = 0;
  int64_t width = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t ffn_width = 0;
  int64_t positions = 0;
  float norm_eps = 1e-5f;
  UnaryOp activation = UnaryOp::quick_gelu;
  int64_t projection = 0;  // width of the pooled vector's projection
  // Absent for checkpoints from before transformers 4.31, whose config has 2: in those, the largest
  // id of a prompt marks its end.
  std::optional<int32_t> eos;

  // Throws invalid_argument naming a field and its value, and unsupported for an activation that is
  // not implemented.
  static ClipTextConfig read(const io::JsonConfig& config);
};

// Which results of the encoder a model reads.
struct ClipTextUse {
  int64_t clip_skip = 1;   // states of the n-th last layer, unless an input says otherwise
  bool final_norm = true;  // over those states
  enum class Pooled : uint8_t { none, norm, projection };
  // Whether the pooled vector, the last layer's state at the prompt's end after the final norm, is
  // used, and projected.
  Pooled pooled = Pooled::none;
};

class ClipTextLayer {
 public:
  ClipTextLayer(const nn::WeightScope& scope, const ClipTextConfig& config);

  Tensor operator()(const Tensor& x) const;  // (batch, tokens, width) both

 private:
  Tensor attend(const Tensor& x) const;

  int64_t heads_;
  UnaryOp activation_;
  nn::LayerNorm attention_norm_, mlp_norm_;
  nn::Linear query_, key_, value_, output_, up_, down_;
};

class ClipTextEncoder final : public TextEncoder {
 public:
  // Takes the names of CLIPTextModel, with or without "text_model." before them.
  ClipTextEncoder(const nn::WeightScope& scope, const ClipTextConfig& config,
                  const ClipTextUse& use);

  TextEncoding operator()(const TextInput& input) const override;

  int64_t width() const override { return config_.width; }
  int64_t pooled_width() const override;
  int64_t max_tokens() const override { return config_.positions; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t layers() const override { return config_.layers; }

 private:
  void check_input(const TextInput& input) const;
  Tensor embed(const TextInput& input) const;
  Tensor pool(const TextInput& input, const Tensor& states) const;

  ClipTextConfig config_;
  ClipTextUse use_;
  DType activations_;
  Tensor tokens_;     // (vocab, width), as stored
  Tensor positions_;  // (positions, width)
  std::vector<ClipTextLayer> layers_;
  nn::LayerNorm final_norm_;
  nn::Linear projection_;
};

}  // namespace rbee::models
