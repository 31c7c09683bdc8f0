#pragma once
// Fields that several forms of a request for text have. Internal to server/contract.

#include <string>
#include <vector>

#include "server/contract/json_object.h"

namespace rbee::server {

// "stop": one text or a list of them.
std::vector<std::string> read_stop(ObjectReader& reader);
// "user", "priority" and "speculative": who asks, how urgently, and how steps are made for it.
void read_turn(ObjectReader& reader, GenerateRequest& request);

}  // namespace rbee::server
