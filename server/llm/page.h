#pragma once
// The chat worker's page at "/" and the files that it loads.

#include <span>
#include <string>
#include <string_view>

#include "server/http/page_file.h"
#include "server/llm/service.h"

namespace rbee::server {

// The page itself.
extern const std::string_view kChatPage;

// Its Content-Security-Policy: the page loads nothing from other hosts, and runs no inline script
// or style, whether from the page or from a model's text.
inline constexpr std::string_view kChatPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The page's files, and their route, /page/{version}/NAME, which needs no key.
std::span<const PageFile> chat_page_files();
std::span<const ChatRoute> page_routes();

// The API's OpenAPI document, openapi.json of this folder.
std::string_view chat_api_document();

}  // namespace rbee::server
