#include "server/apis/image_routes.h"

#include "server/apis/a1111/routes.h"
#include "server/apis/openai/image_routes.h"
#include "server/apis/own/image_routes.h"
#include "server/image/page.h"
#include "server/worker/routes.h"

namespace rbee::server {

std::vector<ImageRoute> image_route_list() {
  std::vector<ImageRoute> out;
  for (const std::span<const ImageRoute> routes :
       {own_image_routes(), openai_image_routes(), image_model_routes(), a1111_routes(),
        image_page_routes()}) {
    out.insert(out.end(), routes.begin(), routes.end());
  }
  return out;
}

Router image_routes(ImageService& service, std::function<void()> shutdown) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  add_api_document(router, image_api_files().front().text);
  for (const ImageRoute& route : image_route_list()) router.add(route, service);
  return router;
}

}  // namespace rbee::server
