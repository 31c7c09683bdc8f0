#pragma once

#include <span>
#include <string_view>

#include "server/http/page_file.h"

namespace rbee::server {

// The page at "/": page.html, embedded by the build.
extern const std::string_view kImagePage;

// Its Content-Security-Policy: the page loads nothing from other hosts; its own script and style
// are inline.
inline constexpr std::string_view kImagePagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self' data:; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

// openapi.json of this folder, the API's OpenAPI document.
std::span<const PageFile> image_api_files();

}  // namespace rbee::server
