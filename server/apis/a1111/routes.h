#pragma once
// AUTOMATIC1111's API, with its ControlNet extension.

#include <optional>
#include <span>

#include "server/image/service.h"

namespace rbee::server {

std::span<const ImageRoute> a1111_routes();

// The answer of a model that works on nothing, for requests that need no model to be answered;
// nothing for all others.
std::optional<Response> a1111_idle_answer(const Request& request);

}  // namespace rbee::server
