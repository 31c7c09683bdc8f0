#pragma once
// OpenAI's routes for pictures, and its list of models.

#include <span>

#include "server/image/service.h"

namespace rbee::server {

std::span<const ImageRoute> openai_image_routes();
std::span<const ImageRoute> image_model_routes();

}  // namespace rbee::server
