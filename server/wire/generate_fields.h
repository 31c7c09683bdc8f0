#pragma once
// Fields that several forms of a request for text have. Internal to the server.

#include <optional>
#include <string>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// Token ids; where one is none, notes it and gives none. name: of the list in errors.
std::vector<int32_t> read_ids(const nlohmann::json& list, const std::string& name,
                              ObjectReader& reader);
// A limit of tokens; -1: as many as fit, which gives INT32_MAX.
std::optional<int32_t> read_limit(ObjectReader& reader, const char* name, int32_t least);
// "stop": one text or a list of them; "stop_token_ids".
void read_stop(ObjectReader& reader, GenerateRequest& request);
// Notes that a field asks for something, unless it has the value by which it asks for nothing;
// null: there is none.
void refuse_unless(ObjectReader& reader, const char* field, const nlohmann::json& neutral);
// Notes what vLLM's fields ask for that is not done here and would change the answer.
void refuse_vllm_fields(ObjectReader& reader);
// "allowed_token_ids", "truncate_prompt_tokens" and "truncation_side".
void read_vllm_fields(ObjectReader& reader, GenerateRequest& request);
// "user", "priority", "speculative" and "cache_salt": who asks, how urgently, how steps are made,
// and with whom the cache is shared.
void read_turn(ObjectReader& reader, GenerateRequest& request);

}  // namespace rbee::server
