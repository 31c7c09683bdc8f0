#pragma once
// Files whose matrices are floats of one byte times a number ("scaled fp8" of ComfyUI and Kijai).

#include <filesystem>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// As Checkpoint::open, but "<layer>.scale_weight" or "<layer>.weight_scale" is the scale of
// "<layer>.weight", and what else tells how another program multiplies with these is left out.
// Bytes are what "<layer>.comfy_quant", JSON, calls them (ComfyUI's QUANTIZATION.md). Throws as
// that, and unsupported naming a scale that is no single number, a format other than
// float8_e4m3fn and float8_e5m2, and a second scale or one of inputs that weights want.
io::Checkpoint open_scaled(const std::filesystem::path& path);

}  // namespace rbee::models
