#include "server/llm/page.h"

namespace rbee::server {

std::span<const PageFile> chat_api_files();

namespace {

constexpr ChatRoute kRoutes[] = {{.method = "GET",
                                  .pattern = "/page/{version}/{name}",
                                  .handler =
                                      [](LlmService&, const Request& request) {
                                        return page_file_response(chat_page_files(), request);
                                      },
                                  .access = Access::anyone}};

}  // namespace

std::span<const ChatRoute> page_routes() {
  return kRoutes;
}

std::string_view chat_api_document() {
  return chat_api_files().front().text;
}

}  // namespace rbee::server
