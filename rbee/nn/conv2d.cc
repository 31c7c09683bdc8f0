#include "rbee/nn/conv2d.h"

namespace rbee::nn {

Conv2d::Conv2d(const WeightScope& scope, const Conv2dShape& shape) : padding_(shape.kernel / 2) {
  weights_.weight = scope.conv("weight", Shape{shape.out, shape.in, shape.kernel, shape.kernel});
  if (shape.bias == Bias::none) return;
  if (shape.bias == Bias::optional && !scope.has("bias")) return;
  weights_.bias = scope.vector("bias", shape.out);
}

}  // namespace rbee::nn
