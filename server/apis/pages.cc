#include "server/apis/pages.h"

#include "server/image/page.h"
#include "server/llm/page.h"
#include "server/worker/routes.h"

namespace rbee::server {

Response chat_page() {
  return page_response({.html = std::string(kChatPage), .policy = std::string(kChatPagePolicy)});
}

Response image_page() {
  return page_response({.html = std::string(kImagePage), .policy = std::string(kImagePagePolicy)});
}

// Files that both pages have are the same, others have names of their own.
Response page_file(const Request& request) {
  Response response = page_file_response(chat_page_files(), request);
  return response.status == 200 ? response : page_file_response(image_page_files(), request);
}

}  // namespace rbee::server
