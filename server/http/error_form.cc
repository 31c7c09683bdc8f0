#include "server/http/error_form.h"

#include "rbee/core/cat.h"

namespace rbee::server {
std::string_view openai_error_type(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 401) return "authentication_error";
  return status < 499 ? "invalid_request_error" : "server_error";
}

std::string_view anthropic_error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 499 ? "invalid_request_error" : "api_error";
  }
}

bool is_anthropics(const Request& request) {
  if (request.errors == ErrorForm::by_version) {
    return !request.header("anthropic-version").empty();
  }
  return request.errors == ErrorForm::anthropic;
}

Response error_response(const Request& request, int status, const ErrorText& text) {
  const std::string message = json_quote(text.message);
  if (request.errors == ErrorForm::own) return error_response(status, text.code, text.message);
  if (request.errors == ErrorForm::ollama) {
    return json_response(status, cat(R"({"error":)", message, "}"));
  }
  if (is_anthropics(request)) {
    return json_response(status,
                         cat(R"({"type":"error","error":{"type":")", anthropic_error_type(status),
                             R"(","message":)", message, "}}"));
  }
  return json_response(
      status, cat(R"({"error":{"message":)", message, R"(,"type":")", openai_error_type(status),
                  R"(","param":)", text.param.empty() ? "null" : json_quote(text.param),
                  R"(,"code":)", json_quote(text.code), "}}"));
}

}  // namespace rbee::server
