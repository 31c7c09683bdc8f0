#pragma once
// The blocks of diffusers' UNet2DConditionModel.

#include <vector>

#include "rbee/models/image/layers.h"
#include "rbee/models/image/unet_config.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

// Keys and values of the prompt in one cross-attention, (batch, heads, tokens, head_dim).
struct KeysValues {
  Tensor keys, values;
};

struct TransformerSpec {
  int64_t width = 0;
  int64_t heads = 0;
  int64_t context_width = 0;
  int64_t depth = 1;
  int64_t groups = 32;
};

// Self-attention, attention to the prompt, and a gated feed-forward layer, each after a layer norm
// and added to x (Rombach et al. 2022, appendix E.2.1).
class TransformerBlock {
 public:
  TransformerBlock(const nn::WeightScope& scope, const TransformerSpec& spec);

  KeysValues prepare(const Tensor& context) const;  // (batch, tokens, context_width)
  // x: (batch, pixels, width)
  Tensor operator()(const Tensor& x, const KeysValues& prompt) const;

 private:
  Tensor attend_self(const Tensor& x) const;
  Tensor feed_forward(const Tensor& x) const;

  int64_t heads_;
  nn::LayerNorm norm1_, norm2_, norm3_;
  nn::Linear self_query_, self_key_, self_value_, self_output_;
  nn::Linear query_, key_, value_, output_;
  nn::Linear gate_, up_, down_;
};

// Group norm, a 1 x 1 layer, the blocks, another 1 x 1 layer, and the input added.
class SpatialTransformer {
 public:
  SpatialTransformer(const nn::WeightScope& scope, const TransformerSpec& spec);

  // Appends the keys and values of each block.
  void prepare(const Tensor& context, std::vector<KeysValues>& prompt) const;
  // x: (batch, height, width, channels). Takes its keys and values off the front of `prompt`.
  Tensor operator()(const Tensor& x, std::span<const KeysValues>& prompt) const;

 private:
  nn::GroupNorm norm_;
  nn::Linear in_, out_;
  std::vector<TransformerBlock> blocks_;
};

// What all blocks share.
struct UnetCommon {
  int64_t time_width = 0;
  int64_t groups = 32;
  float eps = 1e-5f;
};

// What one pass gives to every block.
struct UnetPass {
  std::vector<Tensor> time;            // every resnet's projection of the time vector, (batch, out)
  size_t resnet = 0;                   // the next resnet
  std::span<const KeysValues> prompt;  // of the next transformers
  Circular circular;
};

// The resnets of one resolution, each with its transformer.
class UnetLayers {
 public:
  struct Widths {
    std::vector<int64_t> in;  // by resnet
    int64_t out = 0;
  };
  UnetLayers(const nn::WeightScope& scope, const UnetLevel& level, const Widths& widths,
             const UnetCommon& common);

  size_t size() const { return resnets_.size(); }
  // Appends the projections of the time vector.
  void add_time(std::vector<const LinearWeights*>& layers) const;
  void prepare(const Tensor& context, std::vector<KeysValues>& prompt) const;
  Tensor operator()(size_t index, const Tensor& x, UnetPass& pass) const;

 private:
  std::vector<PictureResnet> resnets_;
  std::vector<SpatialTransformer> transformers_;  // one for each resnet, or none
};

class UnetMiddle {
 public:
  UnetMiddle(const nn::WeightScope& scope, const UnetConfig& config, const UnetCommon& common);

  void add_time(std::vector<const LinearWeights*>& layers) const;
  void prepare(const Tensor& context, std::vector<KeysValues>& prompt) const;
  Tensor operator()(const Tensor& x, UnetPass& pass) const;

 private:
  std::vector<PictureResnet> resnets_;            // one, or two around the transformer
  std::vector<SpatialTransformer> transformers_;  // none or one
};

}  // namespace rbee::models
