#include "server/front/file_answers.h"

#include "rbee/core/cat.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/response.h"
#include "server/front/model_store.h"
#include "server/front/paths.h"
#include "server/front/routing.h"
#include "server/http/error_form.h"

namespace rbee::server {
namespace {

int status_of(const Error& error) {
  switch (error.code()) {
    case Code::invalid_argument:
    case Code::unsupported:
      return 400;
    default:
      return 500;
  }
}

}  // namespace

Response not_allowed(const Request& request, std::string_view flag) {
  return error_response(request, 403,
                        {"FORBIDDEN", cat(request.method, " ", request.path,
                                          " is not allowed here: it needs rbee serve ", flag)});
}

Response plain_error(int status, std::string_view message) {
  return json_response(status, ollama_error_json(message));
}

Response problem_answer(const std::exception& error, const std::string& model) {
  const std::string message = without_folders(valid_text(error.what()));
  if (dynamic_cast<const FilesBusy*>(&error) != nullptr) return plain_error(503, message);
  if (dynamic_cast<const NoRoom*>(&error) != nullptr) return plain_error(507, message);
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours == nullptr) return plain_error(500, message);
  if (ours->code() == Code::not_found && !model.empty()) return no_ollama_model(valid_text(model));
  return plain_error(status_of(*ours), message);
}

bool tell_problems(const std::function<void()>& work, Response& answer, const std::string& model) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    answer = problem_answer(error, model);
    return false;
  }
}

}  // namespace rbee::server
