#include "server/image/page.h"

namespace rbee::server {
namespace {

constexpr ImageRoute kRoutes[] = {{.method = "GET",
                                   .pattern = "/page/{version}/{name}",
                                   .handler =
                                       [](ImageService&, const Request& request) {
                                         return page_file_response(image_page_files(), request);
                                       },
                                   .access = Access::anyone}};

}  // namespace

std::span<const ImageRoute> image_page_routes() {
  return kRoutes;
}

}  // namespace rbee::server
