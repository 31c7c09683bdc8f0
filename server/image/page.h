#pragma once
// The picture worker's page at "/" and the files that it loads.

#include <span>
#include <string_view>

#include "server/http/page_file.h"
#include "server/image/service.h"

namespace rbee::server {

// The page itself.
extern const std::string_view kImagePage;

// Its Content-Security-Policy: the page loads nothing from other hosts and runs no inline script or
// style; its pictures are blobs.
inline constexpr std::string_view kImagePagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' blob:; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The page's files, and their route, /page/{version}/NAME, which needs no key.
std::span<const PageFile> image_page_files();
std::span<const ImageRoute> image_page_routes();

// openapi.json of this folder, the API's OpenAPI document.
std::span<const PageFile> image_api_files();

}  // namespace rbee::server
