#pragma once
// The workers' pages, for a server that answers in their place.

#include "server/http/message.h"

namespace rbee::server {

// As at a chat worker's "/" and at its /page/{version}/{name}.
Response chat_page();
Response page_file(const Request& request);
// As at an image worker's "/".
Response image_page();

}  // namespace rbee::server
