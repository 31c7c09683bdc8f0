#pragma once
// The chat worker's page at "/" and what it loads.

#include <span>
#include <string>
#include <string_view>

#include "server/llm/service.h"

namespace rbee::server {

// The page itself.
extern const std::string_view kChatPage;

// What the page may load, for the header Content-Security-Policy: nothing from elsewhere, and no
// script or style that stands in the page or in a model's text.
inline constexpr std::string_view kChatPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// /page/{version}/NAME of the page's files, for anyone. A browser may keep them: the version
// changes with the files.
std::span<const ChatRoute> page_routes();

// The API's OpenAPI document, openapi.json of this folder.
std::string_view chat_api_document();

}  // namespace rbee::server
