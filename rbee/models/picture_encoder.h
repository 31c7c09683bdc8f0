#pragma once
// Vision encoders: they turn pictures into rows that a language model reads instead of token
// embeddings.

#include <cstdint>

#include "rbee/tensor/tensor.h"

namespace rbee::models {

class PictureEncoder {
 public:
  virtual ~PictureEncoder() = default;

  virtual int64_t side() const = 0;    // pixels; pictures are squares
  virtual int64_t tokens() const = 0;  // rows of a picture
  // picture: (side, side, 3) f32 in [-1, 1], sRGB, rows from the top
  // result: (tokens, dim) in the model's activations; no embedding scale applies to it.
  Tensor operator()(const Tensor& picture) const {
    Tensor x = picture;
    for (int64_t i = 0; i < stages(); ++i) x = stage(i, x);
    return x;
  }
  // The same in stages of about equal work, so that a caller can do other work between them. x: the
  // picture for stage 0, else the result of the stage before. The last stage gives the result.
  virtual int64_t stages() const = 0;  // at least 1
  virtual Tensor stage(int64_t index, const Tensor& x) const = 0;
  // Multiplications for one picture, in all stages.
  virtual double multiplications() const = 0;

  virtual int64_t weight_bytes() const = 0;  // resident
  virtual int64_t parameters() const = 0;
};

}  // namespace rbee::models
