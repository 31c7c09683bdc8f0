#pragma once
// Files of the workers' pages, embedded by rbee_page() of cmake/rbee_pages.cmake.

#include <span>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

struct PageFile {
  std::string_view name;
  std::string_view content_type;
  std::string_view text;
};

// What /page/{version}/{name} answers: the file of that name, which browsers may cache because the
// version changes with the files, or 404.
Response page_file_response(std::span<const PageFile> files, const Request& request);

}  // namespace rbee::server
