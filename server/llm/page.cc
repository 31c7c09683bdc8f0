#include "server/llm/page.h"

#include "rbee/core/cat.h"
#include "server/http/error_form.h"
#include "server/http/page_file.h"

namespace rbee::server {

std::span<const PageFile> chat_page_files();
std::span<const PageFile> chat_api_files();

namespace {

Response answer(const PageFile& file) {
  Response response = text_response(200, std::string(file.text));
  response.content_type = cat(file.content_type, "; charset=utf-8");
  response.headers.emplace_back("Cache-Control", "public, max-age=31536000, immutable");
  return response;
}

constexpr ChatRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/page/{version}/{name}",
     .handler = [](LlmService&, const Request& request) { return chat_page_file(request); },
     .access = Access::anyone}};

}  // namespace

std::span<const ChatRoute> page_routes() {
  return kRoutes;
}

Response chat_page_file(const Request& request) {
  for (const PageFile& file : chat_page_files()) {
    if (file.name == request.param("name")) return answer(file);
  }
  return error_response(request, 404, {"NOT_FOUND", "There is no such path"});
}

std::string_view chat_api_document() {
  return chat_api_files().front().text;
}

}  // namespace rbee::server
