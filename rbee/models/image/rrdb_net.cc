#include "rbee/models/image/rrdb_net.h"

#include "rbee/core/error.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr double kResidual = 0.2;  // the share of a block that is added

// Leaky ReLU of slope 0.2.
Tensor leaky(const Tensor& x) {
  return binary(BinaryOp::maximum, x, affine(x, 0.2, 0));
}

// The pixels of each square of `side` as channels, colour by colour: (1, h / side, w / side,
// 3 * side * side).
Tensor unshuffled(const Tensor& x, int64_t side) {
  if (side == 1) return x;
  const auto [batch, height, width, colours] = x.dims<4>();
  const Tensor squares = contiguous(x)
                             .reshape({height / side, side, width / side, side, colours})
                             .permute({0, 2, 4, 1, 3});
  return contiguous(squares).reshape({batch, height / side, width / side, colours * side * side});
}

}  // namespace

RrdbNet::RrdbNet(const nn::WeightScope& scope, const RrdbShape& shape)
    : shape_(shape), activations_(scope.activations()) {
  const auto conv = [&](const std::string& name, int64_t in, int64_t out) {
    return nn::Conv2d(scope / name, {.in = in, .out = out});
  };
  const int64_t width = shape.width;
  first_ = conv("conv_first", shape.in_channels(), width);
  for (int64_t i = 0; i < shape.blocks * kDenseBlocks; ++i) {
    blocks_.push_back(dense_block(scope, i / kDenseBlocks, i % kDenseBlocks));
  }
  body_ = conv("conv_body", width, width);
  for (int64_t i = 0; i < shape.doublings; ++i) {
    ups_.push_back(conv(cat("conv_up", i + 1), width, width));
  }
  hr_ = conv("conv_hr", width, width);
  last_ = conv("conv_last", width, kColours);
}

RrdbNet::DenseBlock RrdbNet::dense_block(const nn::WeightScope& scope, int64_t block,
                                         int64_t dense) const {
  const int64_t width = shape_.width, growth = shape_.growth;
  DenseBlock out;
  for (int64_t k = 0; k < kDenseConvs; ++k) {
    const int64_t made = k + 1 < kDenseConvs ? growth : width;
    out.convs.push_back(nn::Conv2d(scope / upscaler_conv(block, dense, k),
                                   {.in = width + k * growth, .out = made}));
  }
  if (shape_.shortcuts) {
    out.shortcut = nn::Conv2d(scope / upscaler_shortcut(block, dense),
                              {.in = width, .out = growth, .kernel = 1, .bias = nn::Bias::none});
  }
  return out;
}

Tensor RrdbNet::DenseBlock::operator()(const Tensor& x) const {
  std::vector<Tensor> known{x};
  for (size_t k = 0; k + 1 < convs.size(); ++k) {
    Tensor made = leaky(convs[k](k == 0 ? x : concat(known, Axis{3})));
    if (shortcut.defined() && k == 1) made = made + shortcut(x);
    if (shortcut.defined() && k == 3) made = made + known[2];
    known.push_back(std::move(made));
  }
  return affine(convs.back()(concat(known, Axis{3})), kResidual, 0) + x;
}

Tensor RrdbNet::operator()(const Tensor& x, const Between& between) const {
  constexpr const char* kOp = "upscaler";
  const bool fits = x.rank() == 4 && x.dim(0) == 1 && x.dim(3) == kColours &&
                    x.dim(1) % side_step() == 0 && x.dim(2) % side_step() == 0;
  check(fits, kOp, "the picture is ", x, ", wanted (1, height, width, 3) with sizes that are ",
        "multiples of ", side_step());
  const Tensor first = first_(unshuffled(cast(x, activations_), shape_.unshuffle));
  Tensor h = first;
  for (size_t i = 0; i < blocks_.size(); i += kDenseBlocks) {
    if (between) between();
    Tensor inner = h;
    for (size_t k = i; k < i + kDenseBlocks; ++k) inner = blocks_[k](inner);
    h = affine(inner, kResidual, 0) + h;
  }
  h = first + body_(h);
  ImageConvOptions doubled = padded(1);
  doubled.upsample = true;
  for (const nn::Conv2d& up : ups_) {
    if (between) between();
    h = leaky(up(h, doubled));
  }
  return cast(last_(leaky(hr_(h))), DType::f32);
}

}  // namespace rbee::models
