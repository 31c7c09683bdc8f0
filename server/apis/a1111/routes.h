#pragma once
// AUTOMATIC1111's API, with its ControlNet extension.

#include <optional>
#include <span>

#include "server/image/service.h"

namespace rbee::server {

std::span<const ImageRoute> a1111_routes();

// What an idle model would answer, for requests that can be answered without one; nothing for all
// others.
std::optional<Response> a1111_idle_answer(const Request& request);

}  // namespace rbee::server
