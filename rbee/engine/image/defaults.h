#pragma once
// Default settings from a model's folder.

#include <string_view>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

// Sets default_steps and default_guidance from num_inference_steps (1 to 150) and guidance_scale (0
// to 30) of a generation_config.json; absent fields change nothing. `file` is for errors. Throws
// invalid_argument naming the field and its range.
void read_defaults(std::string_view json, std::string_view file, ImageModelInfo& info);

}  // namespace rbee::engine
