#pragma once
// Translates names of diffusion transformers in files of Stability AI (Stable Diffusion 3), Black
// Forest Labs (FLUX) and ComfyUI (Z-Image) to those of diffusers' folders.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/models/image/entry_parts.h"

namespace rbee::models {

// A layer of diffusers and its rows of the original layer.
struct LayerPart {
  std::string module;
  RowShare rows;
  // Scale and shift are in the opposite order. Only if `rows` are all rows.
  bool halves_swapped = false;
};

// Takes a layer's name, without prefix and leaf, "double_blocks.0.img_attn.qkv"; empty if the
// family has no such layer. `last`: the number of the last block, whose text has no gate.
std::vector<LayerPart> flux_layer(std::string_view module);
std::vector<LayerPart> sd3_layer(std::string_view module, int64_t last);
// The same; a name that is diffusers' stays.
std::vector<LayerPart> z_image_layer(std::string_view module);

// The names of all layers of a model with these blocks.
std::vector<std::string> flux_layers(int64_t double_blocks, int64_t single_blocks);
std::vector<std::string> sd3_layers(int64_t blocks);
std::vector<std::string> z_image_layers(int64_t blocks, int64_t refiner_blocks);

}  // namespace rbee::models
