#pragma once
// SRVGGNetCompact, Real-ESRGAN's small networks: convolutions at the input's size. The last one
// makes all pixels of the larger picture at once.

#include <vector>

#include "rbee/models/image/upscaler.h"
#include "rbee/models/image/upscaler_file.h"
#include "rbee/nn/conv2d.h"

namespace rbee::models {

class CompactNet final : public Upscaler {
 public:
  CompactNet(const nn::WeightScope& scope, const CompactShape& shape);

  int64_t scale() const override { return scale_; }
  int64_t side_step() const override { return 1; }
  Tensor operator()(const Tensor& x, const Between& between = {}) const override;

 private:
  struct Layer {
    nn::Conv2d conv;
    Tensor slopes;  // (channels), factors for values below zero

    Tensor operator()(const Tensor& x) const;
  };

  DType activations_;
  int64_t scale_;
  std::vector<Layer> layers_;
  nn::Conv2d last_;
};

}  // namespace rbee::models
