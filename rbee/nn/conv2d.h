#pragma once

#include "rbee/nn/linear.h"
#include "rbee/ops/image.h"

namespace rbee::nn {

struct Conv2dShape {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 3;
  Bias bias = Bias::required;
};

// image_conv() with weights of a checkpoint. Unless a call says otherwise, pictures keep their
// size: it pads kernel / 2 pixels on each side, with zeros or by wrapping.
class Conv2d {
 public:
  Conv2d() = default;
  // Takes "weight" (out, in, kernel, kernel) and, as the shape says, "bias".
  Conv2d(const WeightScope& scope, const Conv2dShape& shape);

  bool defined() const { return weights_.weight.defined(); }
  // x: (batch, height, width, in)   result: (batch, height, width, out)
  Tensor operator()(const Tensor& x, Circular circular = {}) const {
    return (*this)(x, padded(padding_, circular));
  }
  Tensor operator()(const Tensor& x, const ImageConvOptions& options) const {
    return image_conv(x, weights_, options);
  }
  int64_t padding() const { return padding_; }

 private:
  ConvWeights weights_;
  int64_t padding_ = 0;
};

}  // namespace rbee::nn
