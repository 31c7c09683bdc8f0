#pragma once
// A chat as OpenAI spells it. Internal to server/contract.

#include <vector>

#include "server/contract/json_object.h"

namespace rbee::server {

// "messages": at least one.
std::vector<Message> read_messages(ObjectReader& reader, std::vector<FieldError>& errors);

}  // namespace rbee::server
