#include "server/http/router.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "server/http/error_form.h"

namespace rbee::server {
namespace {

// Cuts the first segment off `path`, which begins with '/'.
std::string_view next_segment(std::string_view& path) {
  path.remove_prefix(1);
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

// Decodes percent-encoding (RFC 3986, section 2.1); invalid sequences stay.
std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* digits = text.data() + i + 1;
    const bool coded = text[i] == '%' && i + 2 < text.size() &&
                       std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    out += coded ? static_cast<char>(byte) : text[i];
    if (coded) i += 2;
  }
  return out;
}

std::optional<Headers> match(std::string_view pattern, std::string_view path) {
  Headers params;
  while (!pattern.empty() && !path.empty()) {
    if (pattern.starts_with("/{+")) {
      if (path.size() == 1) return std::nullopt;
      params.emplace_back(pattern.substr(3, pattern.size() - 4), decoded(path.substr(1)));
      return params;
    }
    const std::string_view want = next_segment(pattern);
    const std::string_view have = next_segment(path);
    if (is_parameter(want)) {
      if (have.empty()) return std::nullopt;
      params.emplace_back(want.substr(1, want.size() - 2), decoded(have));
    } else if (want != have) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return params;
}

// The form of all routes "/word/..." whose word the path has; nothing if there are none, or several
// forms.
std::optional<ErrorForm> form_of_first_word(const std::vector<Route>& routes,
                                            std::string_view path) {
  const size_t end = path.find('/', 1);
  if (!path.starts_with('/') || end == std::string_view::npos) return std::nullopt;
  std::optional<ErrorForm> form;
  for (const Route& route : routes) {
    if (!route.pattern.starts_with(path.substr(0, end + 1))) continue;
    if (form && *form != route.errors) return std::nullopt;
    form = route.errors;
  }
  return form;
}

}  // namespace

void Router::add(Route route) {
  check(route.pattern.starts_with('/'), "router", "pattern '", route.pattern,
        "' does not begin with /");
  routes_.push_back(std::move(route));
}

void Router::set_fallback(Fallback fallback) {
  fallback_ = Route{.method = {},
                    .pattern = "*",
                    .handler = std::move(fallback.handler),
                    .judge = std::move(fallback.judge)};
  fallback_errors_ = std::move(fallback.error_form);
  fallback_changes_ = std::move(fallback.changes);
}

bool Router::changes(std::string_view method, std::string_view path) const {
  if (method == "HEAD") return false;
  const Route* route = find(method, path).route;
  const bool passed_on = fallback_ && route == &*fallback_;
  if (passed_on && fallback_changes_) return fallback_changes_(method, path);
  return route != nullptr && route->changes ? *route->changes : method != "GET";
}

std::optional<Router::PathMatch> Router::find_path(std::string_view path) const {
  if (!path.starts_with('/')) return std::nullopt;
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (std::optional<Headers> params = match(routes_[i].pattern, path)) {
      return PathMatch{i, std::move(*params)};
    }
  }
  return std::nullopt;
}

ErrorForm Router::error_form(std::string_view path) const {
  // A target without a slash, as that of CONNECT, has nothing above it.
  for (std::string_view above = path; above.size() > 1 && above.starts_with('/');) {
    if (const auto found = find_path(above)) return routes_[found->route].errors;
    above = above.substr(0, above.rfind('/'));
  }
  if (const auto root = find_path(path)) return routes_[root->route].errors;
  if (const auto shared = form_of_first_word(routes_, path)) return *shared;
  return fallback_errors_ ? fallback_errors_(path) : ErrorForm::openai;
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match found;
  if (!path.starts_with('/')) return found;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  // A path with routes of its own is no value of a {name}: "/v1/responses/input_tokens" is no id.
  const bool fixed = std::ranges::count(routes_, path, &Route::pattern) > 0;
  for (const Route& route : routes_) {
    if (fixed && route.pattern != path) continue;
    std::optional<Headers> params = match(route.pattern, path);
    if (!params) continue;
    if (route.method == wanted) {
      return Match{.route = &route, .params = std::move(*params), .allow = {}};
    }
    found.allow +=
        cat(found.allow.empty() ? "" : ", ", route.method, route.method == "GET" ? ", HEAD" : "");
  }
  if (found.allow.empty() && fallback_) found.route = &*fallback_;
  return found;
}

Response Router::run(const Route& route, const Request& request) const {
  try {
    try {
      return route.handler(request);
    } catch (const std::exception&) {
      if (!error_answer_) throw;
      return error_answer_(std::current_exception());
    }
  } catch (const std::exception& error) {
    log(LogLevel::error, "a handler failed", {{"route", route.pattern}, {"error", error.what()}});
    return error_response(request, 500, {"INTERNAL", "Internal error"});
  }
}

bool is_json_type(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type == "application/json" ||
         (type.starts_with("application/") && type.ends_with("+json"));
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    const size_t sign = std::min(field.find('='), field.size());
    if (field.substr(0, sign) == name)
      return decoded(field.substr(std::min(sign + 1, field.size())));
  }
  return {};
}

}  // namespace rbee::server
