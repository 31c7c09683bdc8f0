#pragma once
// Answers of the routes about files of models. Internal to server/front.

#include <functional>
#include <string>
#include <string_view>

#include "rbee/core/error.h"
#include "server/http/message.h"

namespace rbee::server {

// 403: the route needs this flag of `rbee serve`.
Response not_allowed(const Request& request, std::string_view flag);
// In Ollama's form.
Response plain_error(int status, std::string_view message);
// The status and message for what work on files throws. model: the one that it needs; empty: none.
Response problem_answer(const std::exception& error, const std::string& model);
// False if `work` throws; then `answer` says what.
bool tell_problems(const std::function<void()>& work, Response& answer,
                   const std::string& model = {});

}  // namespace rbee::server
