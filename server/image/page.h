#pragma once

#include <span>
#include <string_view>

#include "server/http/page_file.h"

namespace rbee::server {

// The page at "/": page.html, embedded by the build.
extern const std::string_view kImagePage;

// What the page may load, for the header Content-Security-Policy: nothing from elsewhere. Its own
// script and style stand in it.
inline constexpr std::string_view kImagePagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self' data:; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

// openapi.json of this folder, the API's OpenAPI document.
std::span<const PageFile> image_api_files();

}  // namespace rbee::server
