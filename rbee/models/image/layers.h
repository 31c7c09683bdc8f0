#pragma once
// Layers that the families of image models share.

#include <string_view>
#include <vector>

#include "rbee/nn/conv2d.h"
#include "rbee/nn/group_norm.h"
#include "rbee/nn/linear.h"

namespace rbee::models {

// Whether int8 may apply to the layer of this weight (diffusers' name). Excluded are the first and
// last layers of a network and the embeddings of time steps and sizes: they have few weights, and
// their errors reach every pixel.
bool multiplies_int8(std::string_view weight);

// Frequencies of a sinusoidal embedding (Vaswani et al. 2017, section 3.5) of `width` numbers:
// 10000^(-i / (width / 2 - shift)), (width / 2) f32
Tensor embedding_frequencies(int64_t width, double shift, Device& device);

enum class SinusoidOrder : uint8_t { cos_first, sin_first };

// values: (n) f32   frequencies: (width / 2)   result: (n, width) f32
Tensor sinusoids(const Tensor& values, const Tensor& frequencies, SinusoidOrder order);

// Linear, SiLU, linear: embeds a time step, a size or a pooled prompt.
class VectorMlp {
 public:
  VectorMlp() = default;
  // Takes linear_1 and linear_2.
  VectorMlp(const nn::WeightScope& scope, int64_t in, int64_t width);

  bool defined() const { return first_.weights().weight.defined(); }
  // x: (batch, in), any float dtype   result: (batch, width) in the scope's activations
  Tensor operator()(const Tensor& x) const;

 private:
  DType activations_ = DType::f32;
  nn::Linear first_, second_;
};

struct ResnetSpec {
  int64_t in = 0;
  int64_t out = 0;
  int64_t time_width = 0;  // of the vector whose projection is added to every pixel; 0 = none
  int64_t groups = 32;
  float eps = 1e-5f;
};

// He et al. 2016 with the norm and SiLU before each convolution.
class PictureResnet {
 public:
  // Takes norm1, conv1, time_emb_proj, norm2, conv2 and, if the number of channels changes,
  // conv_shortcut.
  PictureResnet(const nn::WeightScope& scope, const ResnetSpec& spec);

  // The projection of silu(time vector), (batch, time_width). All resnets of a network read the
  // same vector, so linear_many() computes them together.
  const LinearWeights& time_weights() const { return time_.weights(); }
  // x: (batch, height, width, in)   time: (batch, out) of time_weights(), or undefined
  Tensor operator()(const Tensor& x, const Tensor& time, Circular circular) const;

 private:
  nn::GroupNorm norm1_, norm2_;
  nn::Conv2d conv1_, conv2_, shortcut_;
  nn::Linear time_;
};

// Enlarges the picture twice by nearest neighbour, cuts it to (height, width), which is twice x's
// size or one pixel less along either axis, and convolves it.
Tensor upsample_conv(const Tensor& x, const nn::Conv2d& conv, int64_t height, int64_t width,
                     Circular circular);

// (batch * tokens, width) as (batch, tokens, width): a view, any strides.
Tensor split_rows(const Tensor& x, int64_t batch);
// (batch, pixels or tokens, heads * dim) as (batch, heads, tokens, dim), and back; the first is a
// view, any strides.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor join_heads(const Tensor& x);

}  // namespace rbee::models
