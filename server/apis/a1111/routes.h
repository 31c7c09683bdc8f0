#pragma once
// AUTOMATIC1111's API, with its ControlNet extension.

#include <span>

#include "server/image/service.h"

namespace rbee::server {

std::span<const ImageRoute> a1111_routes();

}  // namespace rbee::server
