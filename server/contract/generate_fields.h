#pragma once
// Fields that several forms of a request for text have. Internal to server/contract.

#include <optional>
#include <string>
#include <vector>

#include "server/contract/json_object.h"

namespace rbee::server {

// Token ids; where one is none, notes it and gives none. name: of the list in errors.
std::vector<int32_t> read_ids(const nlohmann::json& list, const std::string& name,
                              ObjectReader& reader);
// A limit of tokens; -1: as many as fit, which gives INT32_MAX.
std::optional<int32_t> read_limit(ObjectReader& reader, const char* name, int32_t least);
// "stop": one text or a list of them; "stop_token_ids".
void read_stop(ObjectReader& reader, GenerateRequest& request);
// Notes what vLLM's fields ask for that is not done here and would change the answer.
void refuse_vllm_fields(ObjectReader& reader);
// "user", "priority" and "speculative": who asks, how urgently, and how steps are made for it.
void read_turn(ObjectReader& reader, GenerateRequest& request);

}  // namespace rbee::server
