#pragma once
// FP8 weights with scales ("scaled fp8" of ComfyUI, Kijai and kohya; Quanto's in diffusers'
// folders).

#include <filesystem>
#include <string>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// "<layer>.scale_weight", "<layer>.weight_scale" or Quanto's "<layer>.weight._scale" scales
// "<layer>.weight" (or "<layer>.weight._data"); leaves out tensors that tell how another program
// multiplies with them. A scale of (M, N) is one number, (M) or (M, 1) for rows, or (m, n) or (m,
// n, 1) for blocks of (M / m, N / n). "<layer>.comfy_quant" (JSON) names the format of the bytes
// (ComfyUI's QUANTIZATION.md). Throws unsupported naming a scale of another shape, a format other
// than float8_e4m3fn and float8_e5m2, and a second scale or an input scale that the weights need;
// invalid_argument naming a scale that is not a number or belongs to other weights. source: the
// name in messages.
io::Checkpoint with_scales(io::Checkpoint file, const std::string& source);
// Checkpoint::open with scales.
io::Checkpoint open_scaled(const std::filesystem::path& path);

}  // namespace rbee::models
