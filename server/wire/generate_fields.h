#pragma once
// Fields that several APIs' text requests share. Internal to the server.

#include <optional>
#include <string>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// Token ids; notes an invalid id and then returns none. name: of the list in errors.
std::vector<int32_t> read_ids(const nlohmann::json& list, const std::string& name,
                              ObjectReader& reader);
// A limit of tokens; -1 means as many as fit and gives INT32_MAX.
std::optional<int32_t> read_limit(ObjectReader& reader, const char* name, int32_t least);
// "stop" (or the API's name for it): one text or a list of them; "stop_token_ids".
void read_stop(ObjectReader& reader, GenerateRequest& request, const char* name = "stop");
// Notes an unsupported field, unless it has its neutral value; null: it has none.
void refuse_unless(ObjectReader& reader, const char* field, const nlohmann::json& neutral);
// Notes unsupported vLLM fields that would change the answer.
void refuse_vllm_fields(ObjectReader& reader);
// "allowed_token_ids", "truncate_prompt_tokens" and "truncation_side".
void read_vllm_fields(ObjectReader& reader, GenerateRequest& request);
// "user", "priority", "speculative" and "cache_salt": sender, urgency, draft tokens, and with whom
// the cache is shared.
void read_turn(ObjectReader& reader, GenerateRequest& request);

}  // namespace rbee::server
