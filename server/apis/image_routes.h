#pragma once
// The paths of an image worker (docs/reference/http-api.md).

#include <functional>
#include <vector>

#include "server/http/router.h"
#include "server/image/service.h"

namespace rbee::server {

// An image worker's own routes.
std::vector<ImageRoute> image_route_list();

// As chat_routes().
Router image_routes(ImageService& service, std::function<void()> shutdown);

}  // namespace rbee::server
