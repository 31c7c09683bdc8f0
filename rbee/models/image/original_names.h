#pragma once
// Translates names of CompVis' and Stability AI's single-file checkpoints to those of diffusers
// folders.

#include <cstdint>
#include <string>
#include <string_view>

namespace rbee::models {

// The down path of a UNet: what the numbers of its blocks mean.
struct UnetBlockCounts {
  int64_t resnets = 2;  // of each level of the down path; the up path has one more
};

// Each takes a name after its part's prefix, and gives an empty name if models do not read the
// tensor.

// "input_blocks.1.0.in_layers.2.weight" is "down_blocks.0.resnets.0.conv1.weight".
std::string unet_name(std::string_view name, const UnetBlockCounts& counts);
// The other direction for a module, a name without its leaf: "down_blocks.0.attentions.1.proj_in"
// is "input_blocks.2.1.proj_in".
std::string original_unet_module(std::string_view module, const UnetBlockCounts& counts);
// "decoder.up.3.block.0.conv1.weight" is, with four levels, "decoder.up_blocks.0.resnets.0...".
std::string vae_name(std::string_view name, int64_t levels);
// OpenCLIP: "transformer.resblocks.0.mlp.c_fc.bias" is "encoder.layers.0.mlp.fc1.bias". The fused
// in_proj_weight and in_proj_bias keep their own names, after "encoder.layers.<n>.self_attn.".
std::string open_clip_name(std::string_view name);

}  // namespace rbee::models
