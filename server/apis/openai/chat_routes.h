#pragma once
// OpenAI's chats and completions, and its list of models.

#include <span>

#include "server/apis/openai/request.h"
#include "server/llm/service.h"

namespace rbee::server {

// Its prompts, and how many answers each gets.
AnswerPlan plan_of(const OpenAiRequest& request);

std::span<const ChatRoute> openai_chat_routes();
std::span<const ChatRoute> chat_model_routes();

}  // namespace rbee::server
