#include "server/http/admission.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/http/cors.h"
#include "server/http/error_form.h"
#include "server/http/ids.h"
#include "server/http/local_host.h"

namespace rbee::server {
namespace {

size_t count_headers(const Request& request, std::string_view name) {
  return static_cast<size_t>(
      std::count_if(request.headers.begin(), request.headers.end(),
                    [name](const auto& header) { return header.first == name; }));
}

std::optional<Response> refuse_host(const Request& request, bool http_1_0,
                                    const ConnectionContext& context) {
  const size_t hosts = count_headers(request, "host");
  if (hosts > 1 || (hosts == 0 && !http_1_0)) {
    return error_response(request, 400, {"INVALID_REQUEST", "Exactly one Host header is needed"});
  }
  if (hosts == 0 || !context.local_names_only) return std::nullopt;
  if (names_this_machine(request.header("host"), context.options.host)) return std::nullopt;
  return error_response(request, 403,
                        {"FORBIDDEN_HOST",
                         "The Host header must name localhost or a loopback address: without a "
                         "token, no other name is answered"});
}

// The members of all Expect headers.
std::vector<std::string_view> expectations(const Request& request) {
  constexpr std::string_view kBlank = " \t";
  std::vector<std::string_view> out;
  for (const auto& [name, value] : request.headers) {
    if (name != "expect") continue;
    for (std::string_view rest = value; !rest.empty();) {
      std::string_view member = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(member.size() + 1, rest.size()));
      member.remove_prefix(std::min(member.find_first_not_of(kBlank), member.size()));
      member = member.substr(0, member.find_last_not_of(kBlank) + 1);
      if (!member.empty()) out.push_back(member);
    }
  }
  return out;
}

std::optional<Response> refuse_expectation(const Request& request, bool http_1_0) {
  if (http_1_0) return std::nullopt;
  for (const std::string_view expected : expectations(request)) {
    if (same_text(expected, "100-continue")) continue;
    return error_response(request, 417,
                          {"EXPECTATION_FAILED", "Of Expect only 100-continue can be met"});
  }
  return std::nullopt;
}

std::optional<Response> refuse_head(const Request& request, bool http_1_0,
                                    const ConnectionContext& context) {
  const size_t max_fields = context.options.max_header_fields;
  if (request.headers.size() > max_fields) {
    return error_response(request, 431,
                          {"HEADERS_TOO_LARGE", cat("More than ", max_fields, " header fields")});
  }
  const auto plain = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::all_of(request.path.begin(), request.path.end(), plain)) {
    return error_response(
        request, 400,
        {"INVALID_REQUEST",
         "The path holds bytes that are not printable ASCII; percent-encode them"});
  }
  if (auto refused = refuse_expectation(request, http_1_0)) return refused;
  return refuse_host(request, http_1_0, context);
}

// Pages of other sites may send forms, text and empty bodies without a preflight request; only the
// browser's headers show it. With keys, the worker is safe: the browser does not know them.
std::optional<Response> refuse_origin(const Request& request, const ConnectionContext& context) {
  if (context.keys.enabled() || !context.router.changes(request.method, request.path)) {
    return std::nullopt;
  }
  if (!is_of_another_site(request, context.options.cors_origins)) return std::nullopt;
  return error_response(
      request, 403,
      {"FORBIDDEN_ORIGIN", "A web page of another origin asks; --cors-origin allows such"});
}

// Only `chunked` says where a body ends (RFC 9112 section 6.1).
bool knows_transfer_coding(const Request& request) {
  const size_t codings = count_headers(request, "transfer-encoding");
  return codings == 0 ||
         (codings == 1 && same_text(request.header("transfer-encoding"), "chunked"));
}

// The body that a route needs.
std::optional<Response> refuse_body(const Request& request, Body wanted) {
  if (wanted == Body::none) return std::nullopt;
  if (wanted == Body::json && !is_json_type(request.header("content-type"))) {
    return error_response(
        request, 415,
        {"UNSUPPORTED_MEDIA_TYPE", "The body must be JSON (Content-Type: application/json)"});
  }
  const std::string_view coding = request.header("content-encoding");
  if (coding.empty() || same_text(coding, "identity")) return std::nullopt;
  return error_response(
      request, 415,
      {"UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed (Content-Encoding)"});
}

Response no_route(const Request& request, const std::string& allow) {
  if (allow.empty()) return error_response(request, 404, {"NOT_FOUND", "There is no such path"});
  Response response =
      error_response(request, 405, {"METHOD_NOT_ALLOWED", cat(request.path, " takes ", allow)});
  response.headers.emplace_back("Allow", allow);
  return response;
}

}  // namespace

Admission admit(Request& request, bool http_1_0, const ConnectionContext& context) {
  Admission out;
  if (!knows_transfer_coding(request)) {
    out.refusal =
        error_response(request, 501, {"NOT_IMPLEMENTED", "Transfer-Encoding must be chunked"});
    out.last = true;
    return out;
  }
  out.refusal = refuse_head(request, http_1_0, context);
  if (out.refusal) return out;
  out.refusal = preflight(request, context.options.cors_origins);
  if (out.refusal) return out;
  out.refusal = refuse_origin(request, context);
  if (out.refusal) return out;
  Router::Match match = context.router.find(request.method, request.path);
  if (match.route == nullptr || match.route->access == Access::token) {
    ApiKeys::Verdict verdict = context.keys.judge(request);
    out.refusal = std::move(verdict.refusal);
    if (out.refusal) return out;
    request.key_name = std::move(verdict.name);
    // The process that started the worker may act for other senders.
    if (request.key_name == kOwnKey) request.behalf = request.header("x-rbee-sender");
  }
  if (match.route == nullptr) {
    out.refusal = no_route(request, match.allow);
    return out;
  }
  out.refusal = refuse_body(request, match.route->body);
  if (out.refusal) return out;
  request.params = std::move(match.params);
  if (match.route->judge) {
    HeadVerdict verdict = match.route->judge(request);
    out.refusal = std::move(verdict.refusal);
    if (out.refusal) return out;
    out.max_body_bytes = verdict.max_body_bytes;
    out.file = std::move(verdict.file);
  }
  out.route = match.route;
  return out;
}

void set_target(Request& request, std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {  // RFC 9112 section 3.2.2
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(std::min(target.find('/', scheme.size()), target.size()));
    if (target.empty()) target = "/";
  }
  const size_t query = std::min(target.find('?'), target.size());
  request.path = target.substr(0, query);
  if (query < target.size()) request.query = target.substr(query + 1);
}

void name_request(Request& request) {
  const auto sent = [&](std::string_view name) {
    const std::string_view id = request.header(name);
    return valid_correlation_id(id) ? std::string(id) : "";
  };
  request.correlation_id = sent("x-correlation-id");
  request.request_id = sent("x-request-id");
  if (request.correlation_id.empty() && request.request_id.empty()) request.request_id = uuid4();
  if (request.correlation_id.empty()) request.correlation_id = request.request_id;
  if (request.request_id.empty()) request.request_id = request.correlation_id;
}

// HTTP/1.0 has no expectations, so they are ignored there (RFC 9110 section 10.1.1).
bool expects_continue(const Request& request, bool http_1_0) {
  return !http_1_0 && !expectations(request).empty();
}

}  // namespace rbee::server
