#pragma once
// The front's OpenAPI document: its own paths, and those that it routes to workers.

#include <string>
#include <string_view>
#include <vector>

#include "server/front/config.h"

namespace rbee::server {

struct WorkerDocument {
  ModelKind kind;
  std::string text;  // a worker's answer at /openapi.json
};

// documents: at most one of each kind; the first kind gets requests that name none. Skips texts
// that are no OpenAPI document. Prefixes names of schemas and operations with the kind; a path of
// several kinds accepts and returns what any of them does.
std::string front_openapi(const std::vector<WorkerDocument>& documents, std::string_view version);

}  // namespace rbee::server
