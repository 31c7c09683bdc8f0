#include "server/apis/own/image_routes.h"

#include "server/apis/own/image_reply.h"
#include "server/apis/own/image_request.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

Response create_job(ImageService& service, const Request& request) {
  ImageBody body = parse_image_job(request.body).image;
  body.client = request.sender();
  body.room = request.room;
  service.set_default_previews(body);
  return service.prepare(std::move(body), [&service](const ImageBody& sent) {
    return job_created(*service.create_job(sent, [](std::shared_ptr<EventQueue> events) {
      return std::make_unique<ImageJobStream>(std::move(events));
    }));
  });
}

constexpr ImageRoute kRoutes[] = {
    {"POST", "/v1/jobs", create_job, Body::json, ErrorForm::own, Operation::create_job},
    {"POST", "/v1/inference", create_job, Body::json, ErrorForm::own, Operation::create_job},
};

}  // namespace

std::span<const ImageRoute> own_image_routes() {
  return kRoutes;
}

}  // namespace rbee::server
