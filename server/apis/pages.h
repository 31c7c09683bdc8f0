#pragma once
// The workers' pages, for a server that answers in their place.

#include "server/http/message.h"

namespace rbee::server {

// As at a chat worker's "/", and at an image worker's.
Response chat_page();
Response image_page();
// As at /page/{version}/{name} of either.
Response page_file(const Request& request);

}  // namespace rbee::server
