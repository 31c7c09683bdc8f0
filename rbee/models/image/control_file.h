#pragma once
// A ControlNet in one file, in the form of its authors' program (lllyasviel/ControlNet) and
// AUTOMATIC1111's extension: names of the original UNet, zero_convs.* and input_hint_block.*.

#include <filesystem>
#include <string>
#include <string_view>

#include "rbee/models/image/model_files.h"
#include "rbee/models/image/original_names.h"

namespace rbee::models {

// diffusers' name of a tensor, from its name after "control_model."; empty if the model does not
// read it. `hints`: convolutions of input_hint_block. "zero_convs.3.0.weight" is
// "controlnet_down_blocks.3.weight".
std::string control_name(std::string_view name, const UnetBlockCounts& counts, int64_t hints);

// Takes settings from a config.json beside the file if there is one, else from shapes. Throws
// unsupported if the file is not a ControlNet, and what Checkpoint::open throws.
ModelPart read_control_file(const std::filesystem::path& path);

}  // namespace rbee::models
