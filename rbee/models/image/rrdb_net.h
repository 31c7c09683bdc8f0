#pragma once
// RRDBNet: residual blocks of dense blocks, then doublings of the size.

#include <vector>

#include "rbee/models/image/upscaler.h"
#include "rbee/models/image/upscaler_file.h"
#include "rbee/nn/conv2d.h"

namespace rbee::models {

class RrdbNet final : public Upscaler {
 public:
  RrdbNet(const nn::WeightScope& scope, const RrdbShape& shape);

  int64_t scale() const override { return shape_.scale(); }
  int64_t side_step() const override { return shape_.unshuffle; }
  Tensor operator()(const Tensor& x, const Between& between = {}) const override;

 private:
  // Five convolutions; each reads the results of all before it.
  struct DenseBlock {
    std::vector<nn::Conv2d> convs;
    nn::Conv2d shortcut;  // ESRGAN+'s, from the block's input to its second convolution

    Tensor operator()(const Tensor& x) const;
  };

  DenseBlock dense_block(const nn::WeightScope& scope, int64_t block, int64_t dense) const;

  RrdbShape shape_;
  DType activations_;
  nn::Conv2d first_, body_, hr_, last_;
  std::vector<DenseBlock> blocks_;  // kDenseBlocks of them make a residual block
  std::vector<nn::Conv2d> ups_;
};

}  // namespace rbee::models
