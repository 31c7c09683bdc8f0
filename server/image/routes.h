#pragma once
// The paths of an image worker (docs/reference/http-api.md).

#include <functional>

#include "server/http/router.h"
#include "server/image/service.h"

namespace rbee::server {

// As llm_routes().
Router image_routes(ImageService& service, std::function<void()> shutdown);

}  // namespace rbee::server
