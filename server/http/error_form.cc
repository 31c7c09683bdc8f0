#include "server/http/error_form.h"

#include <algorithm>
#include <array>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

enum class Form : uint8_t { own, openai, anthropic };

// The path itself, or one below it.
bool is_under(std::string_view path, std::string_view base) {
  if (!path.starts_with(base)) return false;
  return path.size() == base.size() || path[base.size()] == '/';
}

template <size_t N>
bool is_under(std::string_view path, const std::array<std::string_view, N>& bases) {
  return std::ranges::any_of(bases, [&](std::string_view base) { return is_under(path, base); });
}

Form form_of(const Request& request) {
  static constexpr std::array<std::string_view, 10> kOwn = {"/v1/jobs",
                                                            "/v1/inference",
                                                            "/v1/infer",
                                                            "/v1/cancel",
                                                            "/v1/ready",
                                                            "/v1/health",
                                                            "/v1/loading",
                                                            "/v1/shutdown",
                                                            "/v1/load_lora_adapter",
                                                            "/v1/unload_lora_adapter"};
  static constexpr std::array<std::string_view, 23> kOpenAi = {
      "/v1",        "/completion", "/completions",      "/infill",      "/props",      "/slots",
      "/tokenize",  "/detokenize", "/apply-template",   "/rerank",      "/v2/rerank",  "/score",
      "/reranking", "/models",     "/chat/completions", "/responses",   "/embeddings", "/embedding",
      "/v2/embed",  "/pooling",    "/classify",         "/invocations", "/embed"};
  const std::string_view path = request.path;
  if (is_under(path, "/v1/messages")) return Form::anthropic;
  const bool asks = !request.header("anthropic-version").empty();
  if (asks && (is_under(path, "/v1/models") || is_under(path, "/models"))) return Form::anthropic;
  if (is_under(path, kOwn)) return Form::own;
  return is_under(path, kOpenAi) ? Form::openai : Form::own;
}

// As a worker's handlers say it.
std::string_view openai_type(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 401) return "authentication_error";
  return status < 499 ? "invalid_request_error" : "server_error";
}

std::string_view anthropic_type(int status) {
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

}  // namespace

bool is_anthropics(const Request& request) {
  return form_of(request) == Form::anthropic;
}

Response error_response(const Request& request, int status, const ErrorText& text) {
  const std::string message = json_quote(text.message);
  switch (form_of(request)) {
    case Form::anthropic:
      return json_response(status, cat(R"({"type":"error","error":{"type":")",
                                       anthropic_type(status), R"(","message":)", message, "}}"));
    case Form::openai:
      return json_response(
          status, cat(R"({"error":{"message":)", message, R"(,"type":")", openai_type(status),
                      R"(","param":)", text.param.empty() ? "null" : json_quote(text.param),
                      R"(,"code":)", json_quote(text.code), "}}"));
    case Form::own:
      break;
  }
  return error_response(status, text.code, text.message);
}

}  // namespace rbee::server
