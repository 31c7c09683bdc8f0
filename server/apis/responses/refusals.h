#pragma once
// Answers to requests about what the worker does not keep.

#include <string>
#include <string_view>

#include "server/http/message.h"
#include "server/llm/response_store.h"

namespace rbee::server {

// In OpenAI's form of errors.
Response refusal(int status, std::string_view code, std::string_view param, std::string message);
// The worker keeps nothing at all.
Response keeps_nothing(std::string_view param);
// 404, in OpenAI's words.
Response no_conversation(const ResponseStore& store, std::string_view param, const std::string& id);
// Another response works on the conversation. In OpenAI's words, which clients look for.
Response conversation_locked();
// The conversation takes no more.
Response conversation_full(std::string_view param);

}  // namespace rbee::server
