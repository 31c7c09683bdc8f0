#pragma once
// Weights that are floats of one byte times numbers ("scaled fp8" of ComfyUI, Kijai and kohya;
// Quanto's in diffusers' folders).

#include <filesystem>
#include <string>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// "<layer>.scale_weight", "<layer>.weight_scale" or Quanto's "<layer>.weight._scale" scales
// "<layer>.weight" (or "<layer>.weight._data"); what else tells how another program multiplies with
// these is left out. A scale of (M, N) is one number, (M) or (M, 1) for rows, or (m, n) or
// (m, n, 1) for blocks of (M / m, N / n). Bytes are what "<layer>.comfy_quant", JSON, calls them
// (ComfyUI's QUANTIZATION.md). Throws unsupported naming a scale of another shape, a format other
// than float8_e4m3fn and float8_e5m2, and a second scale or one of inputs that weights want;
// invalid_argument naming one that is no number or belongs to other weights. source: of messages.
io::Checkpoint with_scales(io::Checkpoint file, const std::string& source);
// Checkpoint::open with scales.
io::Checkpoint open_scaled(const std::filesystem::path& path);

}  // namespace rbee::models
