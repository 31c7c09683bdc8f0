#pragma once
// Parts with diffusers' names but without its config.json: answers the questions of
// inferred_config.h, which uses original names.

#include <string>
#include <string_view>

#include "rbee/models/image/inferred_config.h"

namespace rbee::models {

// `found`: by diffusers' name after the part's prefix.
bool is_diffusers_unet(const ShapeOf& found);
bool is_diffusers_vae(const ShapeOf& found);
// By original name.
ShapeOf diffusers_unet_shapes(ShapeOf found);
ShapeOf diffusers_vae_shapes(ShapeOf found);

// Translates names that stable-diffusion.cpp's converter gives to text encoders of a diffusers
// folder to the folder's, without the "text_model." of older folders: "te.1.text_model.encoder..."
// becomes "text_encoder_2.encoder...". Other names do not change.
std::string encoder_folder_name(std::string_view name);

}  // namespace rbee::models
