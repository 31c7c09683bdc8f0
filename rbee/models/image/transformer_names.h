#pragma once
// Names of diffusion transformers in the files of Stability AI (Stable Diffusion 3) and Black
// Forest Labs (FLUX) as those of diffusers' folders.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/models/image/entry_parts.h"

namespace rbee::models {

// A layer of diffusers and the rows of the original layer that are its own.
struct LayerPart {
  std::string module;
  RowShare rows;
  // Scale and shift lie the other way round; only where `rows` are all.
  bool halves_swapped = false;
};

// Takes a layer's name, without prefix and leaf, "double_blocks.0.img_attn.qkv"; empty for what is
// no layer of the family. `last`: the number of the last block, whose text is not gated.
std::vector<LayerPart> flux_layer(std::string_view module);
std::vector<LayerPart> sd3_layer(std::string_view module, int64_t last);

// The names of all layers that a model may have.
std::vector<std::string> flux_layers(int64_t double_blocks, int64_t single_blocks);
std::vector<std::string> sd3_layers(int64_t blocks);

}  // namespace rbee::models
