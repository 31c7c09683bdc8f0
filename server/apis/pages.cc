#include "server/apis/pages.h"

#include "server/image/page.h"
#include "server/llm/page.h"
#include "server/worker/routes.h"

namespace rbee::server {

Response chat_page() {
  return page_response({.html = std::string(kChatPage), .policy = std::string(kChatPagePolicy)});
}

Response page_file(const Request& request) {
  return chat_page_file(request);
}

Response image_page() {
  return page_response({.html = std::string(kImagePage), .policy = std::string(kImagePagePolicy)});
}

}  // namespace rbee::server
