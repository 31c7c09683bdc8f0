#pragma once
// What turns pictures into rows that a language model reads in place of token embeddings.

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
  virtual Tensor operator()(const Tensor& picture) const = 0;

  virtual int64_t weight_bytes() const = 0;  // resident
  virtual int64_t parameters() const = 0;
};

}  // namespace rbee::models
