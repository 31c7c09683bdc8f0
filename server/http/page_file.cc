#include "server/http/page_file.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/http/error_form.h"

namespace rbee::server {

Response page_file_response(std::span<const PageFile> files, const Request& request) {
  const auto file = std::ranges::find(files, request.param("name"), &PageFile::name);
  if (file == files.end()) {
    return error_response(request, 404, {"NOT_FOUND", "There is no such path"});
  }
  Response response = text_response(200, std::string(file->text));
  response.content_type = cat(file->content_type, "; charset=utf-8");
  response.headers.emplace_back("Cache-Control", "public, max-age=31536000, immutable");
  return response;
}

}  // namespace rbee::server
