#pragma once

#include <string_view>

namespace rbee::server {

// The page at "/": page.html, embedded by the build.
extern const std::string_view kImagePage;

}  // namespace rbee::server
