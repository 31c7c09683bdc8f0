#include "server/http/message.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "rbee/core/cat.h"
#include "server/http/clock.h"
#include "server/http/error_form.h"

namespace rbee::server {
namespace {

bool has_retry_after(const Response& response) {
  return std::ranges::any_of(
      response.headers, [](const auto& header) { return same_text(header.first, "retry-after"); });
}

std::string_view find(const Headers& list, std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  return find(headers, name);
}

std::string_view Request::param(std::string_view name) const {
  return find(params, name);
}

Response text_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

Response json_response(int status, std::string json) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(json);
  return response;
}

Response error_response(int status, std::string_view code, std::string_view message) {
  return json_response(status, cat(R"({"error":{"code":)", json_quote(code), R"(,"message":)",
                                   json_quote(message), "}}"));
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

bool same_text(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string printable(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

std::string json_quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string serialize_head(const Response& response, const Request& request,
                           const HeadOptions& options) {
  std::string head = cat(options.http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ", response.status, " ",
                         reason_phrase(response.status), "\r\n");
  const auto add = [&head](std::string_view name, std::string_view value) {
    head += cat(name, ": ", value, "\r\n");
  };
  add("Date", http_date(std::chrono::system_clock::now()));
  add("Server", options.server);
  add("Content-Type", response.content_type);
  if (response.events) {
    add("Cache-Control", "no-cache");
    add("X-Accel-Buffering", "no");
    if (!options.http_1_0) add("Transfer-Encoding", "chunked");
  } else {
    if (response.status != 204) add("Content-Length", cat(response.body.size()));
  }
  add("X-Content-Type-Options", "nosniff");
  if (!request.correlation_id.empty()) add("X-Correlation-ID", request.correlation_id);
  if (!request.request_id.empty()) add("X-Request-ID", request.request_id);
  if (is_anthropics(request)) add("request-id", request.request_id);
  for (const auto& [name, value] : response.headers) add(name, value);
  if (response.status == 503 && !has_retry_after(response)) add("Retry-After", "1");
  if (!options.origin.empty()) {
    add("Access-Control-Allow-Origin", options.origin);
    add("Access-Control-Expose-Headers", "X-Correlation-ID, X-Request-ID, request-id, Retry-After");
    if (options.origin != "*") add("Vary", "Origin");
  }
  if (!options.keep_alive) {
    add("Connection", "close");
  } else if (options.http_1_0) {
    add("Connection", "keep-alive");
  }
  head += "\r\n";
  return head;
}

std::string chunk(std::string_view data) {
  if (data.empty()) return "0\r\n\r\n";
  char size[20];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
  std::string out;
  out.reserve(data.size() + 24);
  out.append(size, end);
  out += "\r\n";
  out += data;
  out += "\r\n";
  return out;
}

}  // namespace rbee::server
