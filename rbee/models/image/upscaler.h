#pragma once
// Upscalers: networks that enlarge pictures.

#include <filesystem>
#include <memory>

#include "rbee/models/image/parts.h"

namespace rbee::models {

class Upscaler {
 public:
  virtual ~Upscaler() = default;
  virtual int64_t scale() const = 0;
  // The input's height and width must be multiples of this.
  virtual int64_t side_step() const = 0;
  // x: (1, height, width, 3) f32, colours from 0 to 1   result: (1, height * scale, width * scale,
  // 3) f32, about that, not clamped. Calls `between` between layers. Throws invalid_argument for
  // other shapes.
  virtual Tensor operator()(const Tensor& x, const Between& between = {}) const = 0;
};

// A safetensors file of f32, f16 or bf16, see upscaler_file.h. Throws as read_upscaler_file().
std::unique_ptr<Upscaler> load_upscaler(const std::filesystem::path& path, Device& device,
                                        DType activations);

}  // namespace rbee::models
