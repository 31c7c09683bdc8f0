#pragma once
// AUTOMATIC1111's API, and what its ControlNet extension adds.

#include <span>

#include "server/image/service.h"

namespace rbee::server {

std::span<const ImageRoute> a1111_routes();

}  // namespace rbee::server
