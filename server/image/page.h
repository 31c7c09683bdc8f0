#pragma once

#include <string_view>

namespace rbee::server {

// The page at "/": page.html, embedded by the build.
extern const std::string_view kImagePage;

// What the page may load, for the header Content-Security-Policy: nothing from elsewhere. Its own
// script and style stand in it.
inline constexpr std::string_view kImagePagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self' data:; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

}  // namespace rbee::server
