#include "server/http/cors.h"

#include <algorithm>

namespace rbee::server {

bool is_origin(std::string_view text) {
  if (text == "null") return true;
  const size_t scheme = text.find("://");
  if (scheme == text.npos || scheme == 0) return false;
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; }) &&
         std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; }) &&
         host.find_first_of("/?#@") == host.npos;
}

std::string allowed_origin(const Request& request, const std::vector<std::string>& allowed) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return {};
  if (std::ranges::find(allowed, "*") != allowed.end()) return "*";
  return std::ranges::find(allowed, origin) != allowed.end() ? std::string(origin) : "";
}

bool is_of_another_site(const Request& request, const std::vector<std::string>& allowed) {
  if (!allowed_origin(request, allowed).empty()) return false;
  const std::string_view origin = request.header("origin");
  if (origin.empty()) {
    const std::string_view site = request.header("sec-fetch-site");
    return site == "cross-site" || site == "same-site";
  }
  const size_t scheme = origin.find("://");
  return scheme == origin.npos || !same_text(origin.substr(scheme + 3), request.header("host"));
}

std::optional<Response> preflight(const Request& request, const std::vector<std::string>& allowed) {
  const std::string_view method = request.header("access-control-request-method");
  if (request.method != "OPTIONS" || method.empty()) return std::nullopt;
  if (allowed_origin(request, allowed).empty()) return std::nullopt;
  Response response;
  response.status = 204;
  response.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE"},
                      {"Access-Control-Max-Age", "600"}};
  const std::string_view headers = request.header("access-control-request-headers");
  if (!headers.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", headers);
  return response;
}

}  // namespace rbee::server
