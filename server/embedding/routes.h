#pragma once
// The paths of a worker for embeddings or ranking (docs/reference/http-api.md).

#include <functional>

#include "server/embedding/service.h"
#include "server/http/page_file.h"
#include "server/http/router.h"

namespace rbee::server {

// service: outlives the router. shutdown: as of add_worker_routes().
Router embedding_routes(EmbeddingService& service, std::function<void()> shutdown);

// openapi.json of this folder, the API's OpenAPI document.
std::span<const PageFile> embedding_api_files();

}  // namespace rbee::server
