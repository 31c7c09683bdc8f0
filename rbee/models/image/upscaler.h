#pragma once
// Networks that enlarge pictures: RRDBNet (Wang et al. 2018 and 2021), ESRGAN's and Real-ESRGAN's.

#include <filesystem>
#include <memory>
#include <vector>

#include "rbee/models/image/parts.h"
#include "rbee/models/image/upscaler_file.h"
#include "rbee/nn/conv2d.h"

namespace rbee::models {

class RrdbNet {
 public:
  RrdbNet(const nn::WeightScope& scope, const UpscalerShape& shape);

  int64_t scale() const { return shape_.scale(); }
  // Height and width of x are multiples of it.
  int64_t side_step() const { return shape_.unshuffle; }
  // x: (1, height, width, 3) f32, colours from 0 to 1   result: (1, height * scale, width * scale,
  // 3) f32, about that, not clamped. Calls `between` between blocks.
  Tensor operator()(const Tensor& x, const Between& between = {}) const;

 private:
  // Five convolutions, each of which reads what all before it have made.
  struct DenseBlock {
    std::vector<nn::Conv2d> convs;

    Tensor operator()(const Tensor& x) const;
  };

  UpscalerShape shape_;
  DType activations_;
  nn::Conv2d first_, body_, hr_, last_;
  std::vector<DenseBlock> blocks_;  // kDenseBlocks of them make a residual block
  std::vector<nn::Conv2d> ups_;
};

// A safetensors file of f32, f16 or bf16, see upscaler_file.h. Throws as read_upscaler_file().
std::unique_ptr<RrdbNet> load_upscaler(const std::filesystem::path& path, Device& device,
                                       DType activations);

}  // namespace rbee::models
