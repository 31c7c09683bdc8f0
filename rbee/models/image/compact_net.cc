#include "rbee/models/image/compact_net.h"

#include "rbee/core/error.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {

CompactNet::CompactNet(const nn::WeightScope& scope, const CompactShape& shape)
    : activations_(scope.activations()), scale_(shape.scale) {
  const nn::WeightScope body = scope / "body";
  int64_t next = 0;
  for (int64_t i = 0; i <= shape.convs; ++i) {
    const int64_t in = i == 0 ? kColours : shape.width;
    nn::Conv2d conv(body / cat(next), {.in = in, .out = shape.width});
    layers_.push_back({std::move(conv), (body / cat(next + 1)).vector("weight", shape.width)});
    next += 2;
  }
  last_ = nn::Conv2d(body / cat(next), {.in = shape.width, .out = kColours * scale_ * scale_});
}

// PReLU(conv(x))
Tensor CompactNet::Layer::operator()(const Tensor& x) const {
  const Tensor y = conv(x);
  const Tensor above = unary(UnaryOp::relu, y);
  return above + (y - above) * slopes;
}

Tensor CompactNet::operator()(const Tensor& x, const Between& between) const {
  check(x.rank() == 4 && x.dim(0) == 1 && x.dim(3) == kColours, "upscaler", "the picture is ", x,
        ", wanted (1, height, width, 3)");
  const int64_t height = x.dim(1), width = x.dim(2), scale = scale_;
  Tensor h = cast(x, activations_);
  for (const Layer& layer : layers_) {
    if (between) between();
    h = layer(h);
  }
  // Channels are the pixels of a square, colour by colour.
  const Tensor squares = cast(last_(h), DType::f32)
                             .reshape({height, width, kColours, scale, scale})
                             .permute({0, 3, 1, 4, 2});
  const Tensor nearest = contiguous(x).reshape({height, 1, width, 1, kColours});
  return (squares + nearest).reshape({1, height * scale, width * scale, kColours});
}

}  // namespace rbee::models
