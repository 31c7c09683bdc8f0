#pragma once
// Parts under diffusers' names without its config.json: what inferred_config.h asks by original
// names, answered by theirs.

#include <string>
#include <string_view>

#include "rbee/models/image/inferred_config.h"

namespace rbee::models {

// `found`: by diffusers' name behind the part's prefix.
bool is_diffusers_unet(const ShapeOf& found);
bool is_diffusers_vae(const ShapeOf& found);
// By original name.
ShapeOf diffusers_unet_shapes(ShapeOf found);
ShapeOf diffusers_vae_shapes(ShapeOf found);

// What stable-diffusion.cpp's converter calls the text encoders of a diffusers folder, under the
// names of its sub-folders, without the "text_model." that older folders have:
// "te.1.text_model.encoder..." is "text_encoder_2.encoder...". Others are unchanged.
std::string encoder_folder_name(std::string_view name);

}  // namespace rbee::models
