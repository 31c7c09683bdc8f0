#include "server/llm/page.h"

#include "rbee/core/cat.h"
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

}  // namespace

void add_page_routes(Router& router) {
  for (const PageFile& file : chat_page_files()) {
    router.add({.method = "GET",
                .pattern = cat("/page/{version}/", file.name),
                .handler = [file](const Request&) { return answer(file); },
                .access = Access::anyone});
  }
}

std::string_view chat_api_document() {
  return chat_api_files().front().text;
}

}  // namespace rbee::server
