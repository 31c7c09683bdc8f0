#pragma once
// text-generation-inference's routes.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> tgi_routes();

}  // namespace rbee::server
