#pragma once

#include <span>

#include "server/http/page_file.h"

namespace rbee::server {

// openapi.json of this folder, the API's OpenAPI document.
std::span<const PageFile> embedding_api_files();

}  // namespace rbee::server
