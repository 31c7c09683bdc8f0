#pragma once
// The paths of an embedding or reranking worker (docs/reference/http-api.md).

#include <functional>
#include <span>

#include "server/embedding/api_document.h"
#include "server/embedding/service.h"
#include "server/http/router.h"

namespace rbee::server {

// Routes of embedding models, of reranking models, and of both.
std::span<const EmbeddingRoute> embedding_route_list();
std::span<const EmbeddingRoute> ranking_route_list();
std::span<const EmbeddingRoute> pooling_route_list();

// The service must outlive the router. shutdown: as in add_worker_routes().
Router embedding_routes(EmbeddingService& service, std::function<void()> shutdown);

}  // namespace rbee::server
