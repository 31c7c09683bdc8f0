#pragma once
// The paths of a worker for embeddings or ranking (docs/reference/http-api.md).

#include <functional>

#include "server/embedding/service.h"
#include "server/http/router.h"

namespace rbee::server {

// service: outlives the router. shutdown: as of add_worker_routes().
Router embedding_routes(EmbeddingService& service, std::function<void()> shutdown);

}  // namespace rbee::server
