#pragma once
// Reads a chat in OpenAI's form. Internal to the server.

#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// "messages": at least one.
std::vector<SentMessage> read_messages(ObjectReader& reader, std::vector<FieldError>& errors);

}  // namespace rbee::server
