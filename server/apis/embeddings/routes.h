#pragma once
// The paths of a worker for embeddings or ranking (docs/reference/http-api.md).

#include <functional>
#include <span>

#include "server/embedding/api_document.h"
#include "server/embedding/service.h"
#include "server/http/router.h"

namespace rbee::server {

// Routes of models for embeddings, of those for ranking, and of both.
std::span<const EmbeddingRoute> embedding_route_list();
std::span<const EmbeddingRoute> ranking_route_list();
std::span<const EmbeddingRoute> pooling_route_list();

// service: outlives the router. shutdown: as of add_worker_routes().
Router embedding_routes(EmbeddingService& service, std::function<void()> shutdown);

}  // namespace rbee::server
