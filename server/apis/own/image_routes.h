#pragma once
// The worker's own jobs for pictures.

#include <span>

#include "server/image/service.h"

namespace rbee::server {

std::span<const ImageRoute> own_image_routes();

}  // namespace rbee::server
