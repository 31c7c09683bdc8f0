#pragma once
// Requests and responses as handlers see them, free of any HTTP library.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/trace.h"

namespace rbee::server {

class EventQueue;
class DelayedResponse;

using Headers = std::vector<std::pair<std::string, std::string>>;

// The form of an API's errors: of OpenAI's, which llama-server and vLLM share,
// {"error":{"message","type","param","code"}}; of Anthropic's {"type":"error","error":{"type",
// "message"}}; of the worker's own {"error":{"code","message"}}.
enum class ErrorForm : uint8_t {
  own,
  openai,
  anthropic,
  by_version,  // Anthropic's if the client sends "anthropic-version", else OpenAI's
};

struct Request {
  std::string method;  // as sent, e.g. "GET"
  std::string path;    // target without the query
  std::string query;   // what followed '?', undecoded
  Headers headers;     // names in lower case
  std::string body;
  Headers params;              // values of the route's {name} segments
  std::string correlation_id;  // the client's when valid, else as request_id
  std::string request_id;      // X-Request-ID when valid, else as correlation_id or a fresh UUID
  std::string remote;          // peer address, for logs
  std::string key_name;        // of the key that it came with; empty when none is asked for

  ActiveSpan trace;  // of this request; without a tracer when it is not traced

  ErrorForm errors = ErrorForm::own;  // of the route; see Router::error_form()

  std::string behalf;  // whom it is for, in the header X-Rbee-Sender with the own token

  // Who asks: whom it is for, the key's name, else the address.
  const std::string& sender() const {
    if (!behalf.empty()) return behalf;
    return key_name.empty() ? remote : key_name;
  }

  // Value of the first such header (name in lower case); empty when absent.
  std::string_view header(std::string_view name) const;
  // Value of a {name} segment of the matched pattern; empty when the pattern has none.
  std::string_view param(std::string_view name) const;
};

// Why a request is refused, for the log. No part of it quotes what the client sent but the names of
// fields.
struct RefusalReason {
  std::string code;        // as the client is told it; of Anthropic's form the type
  std::string field;       // the first that is wrong; empty where none is named
  std::string constraint;  // what that field has to be, e.g. "range(0..=2)"; empty: unknown
};

// At most one of `events` and `later` is set; with `events`, `body` is unused; with `later`, the
// whole response is replaced by the one that comes, which may have events.
struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  Headers headers;                         // besides those that every response gets
  RefusalReason reason{};                  // what the body's form may have no place for
  std::shared_ptr<EventQueue> events;      // body sent as server-sent events while they come
  std::shared_ptr<DelayedResponse> later;  // answered when a producer has it
};

Response text_response(int status, std::string body);
Response json_response(int status, std::string json);
// {"error":{"code":...,"message":...}}
Response error_response(int status, std::string_view code, std::string_view message);

// "Not Found" for 404; "Unknown" where there is no name.
std::string_view reason_phrase(int status);
// Equal but for the case of ASCII letters.
bool same_text(std::string_view a, std::string_view b);
// Text of any bytes as logs and spans show it: what is not printable ASCII is '?'.
std::string printable(std::string text);
// A JSON string literal; bytes that are not UTF-8 are the caller's business.
std::string json_quote(std::string_view text);

struct HeadOptions {
  bool http_1_0 = false;    // version of the request
  bool keep_alive = false;  // whether the connection stays open
  std::string server;       // value of the Server header
  std::string origin;       // of Access-Control-Allow-Origin; empty = none
};
// Status line and headers, with the final empty line. A 503 says when to ask again. Paths of
// Anthropic's API have the request's name in request-id too. Events of an HTTP/1.1 request are
// chunked; those of HTTP/1.0 end with the connection.
std::string serialize_head(const Response& response, const Request& request,
                           const HeadOptions& options);
// One chunk of a chunked body. An empty `data` gives the last chunk.
std::string chunk(std::string_view data);

}  // namespace rbee::server
