#include "server/http/admission.h"

#include <algorithm>
#include <cctype>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

std::optional<Response> refuse_headers(const Request& request, bool http_1_0, size_t max_fields) {
  if (request.headers.size() > max_fields) {
    return error_response(431, "HEADERS_TOO_LARGE",
                          cat("More than ", max_fields, " header fields"));
  }
  const auto is_host = [](const auto& header) { return header.first == "host"; };
  const auto hosts = std::count_if(request.headers.begin(), request.headers.end(), is_host);
  if (hosts > 1 || (hosts == 0 && !http_1_0)) {
    return error_response(400, "INVALID_REQUEST", "Exactly one Host header is needed");
  }
  return std::nullopt;
}

Response no_route(const Request& request, const std::string& allow) {
  if (allow.empty()) return error_response(404, "NOT_FOUND", "There is no such path");
  Response response =
      error_response(405, "METHOD_NOT_ALLOWED", cat(request.path, " takes ", allow));
  response.headers.emplace_back("Allow", allow);
  return response;
}

}  // namespace

Admission admit(const Request& request, bool http_1_0, const ConnectionContext& context) {
  Admission out;
  out.refusal = refuse_headers(request, http_1_0, context.options.max_header_fields);
  if (out.refusal) return out;
  Router::Match match = context.router.find(request.method, request.path);
  if (match.route == nullptr || match.route->access == Access::token) {
    out.refusal = context.auth.refuse(request);
    if (out.refusal) return out;
  }
  if (match.route == nullptr) {
    out.refusal = no_route(request, match.allow);
  } else if (match.route->body == Body::json && !is_json_type(request.header("content-type"))) {
    out.refusal = error_response(415, "UNSUPPORTED_MEDIA_TYPE",
                                 "The body must be JSON (Content-Type: application/json)");
  } else {
    out.route = match.route;
    out.params = std::move(match.params);
  }
  return out;
}

void set_target(Request& request, std::string_view target) {
  if (target.starts_with("http://")) {  // RFC 9112 section 3.2.2
    target.remove_prefix(std::min(target.find('/', 7), target.size()));
    if (target.empty()) target = "/";
  }
  const size_t query = std::min(target.find('?'), target.size());
  request.path = target.substr(0, query);
  if (query < target.size()) request.query = target.substr(query + 1);
}

bool expects_continue(const Request& request) {
  const std::string_view expect = request.header("expect");
  constexpr std::string_view kContinue = "100-continue";
  return std::equal(expect.begin(), expect.end(), kContinue.begin(), kContinue.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

}  // namespace rbee::server
