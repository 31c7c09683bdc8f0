#pragma once
// A ControlNet in one file, as its authors' program (lllyasviel/ControlNet) and AUTOMATIC1111's
// extension hold it: names of the original UNet, zero_convs.* and input_hint_block.*.

#include <filesystem>
#include <string>
#include <string_view>

#include "rbee/models/image/model_files.h"
#include "rbee/models/image/original_names.h"

namespace rbee::models {

// diffusers' name of a tensor whose name stands behind "control_model."; `hints`: convolutions of
// input_hint_block. Empty for what is not read. "zero_convs.3.0.weight" is
// "controlnet_down_blocks.3.weight".
std::string control_name(std::string_view name, const UnetBlockCounts& counts, int64_t hints);

// Takes settings from a config.json beside the file when there is one, else from shapes. Throws
// unsupported when the file is no ControlNet, and what Checkpoint::open throws.
ModelPart read_control_file(const std::filesystem::path& path);

}  // namespace rbee::models
