#pragma once
// A file of a worker's page, embedded by rbee_page() of cmake/rbee_pages.cmake.

#include <span>
#include <string_view>

namespace rbee::server {

struct PageFile {
  std::string_view name;
  std::string_view content_type;
  std::string_view text;
};

}  // namespace rbee::server
