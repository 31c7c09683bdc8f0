#pragma once
// The front's OpenAPI document: its own paths, and of its workers' documents the paths that it
// routes to them.

#include <string>
#include <string_view>
#include <vector>

#include "server/front/config.h"

namespace rbee::server {

struct WorkerDocument {
  ModelKind kind;
  std::string text;  // what a worker of this kind says at /openapi.json
};

// documents: at most one of each kind, the kind first that gets requests which name none. One that
// is no OpenAPI document is left out. Names of schemas and operations begin with the kind; a path
// of several kinds takes and gives what either does.
std::string front_openapi(const std::vector<WorkerDocument>& documents, std::string_view version);

}  // namespace rbee::server
