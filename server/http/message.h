#pragma once
// Requests and responses for handlers, independent of any HTTP library.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/body_room.h"
#include "server/http/trace.h"

namespace rbee::server {

class BodyFile;
class EventQueue;
class DelayedResponse;

using Headers = std::vector<std::pair<std::string, std::string>>;

// The form of an API's errors: OpenAI's, also of llama-server and vLLM,
// {"error":{"message","type","param","code"}}; Anthropic's {"type":"error","error":{"type",
// "message"}}; Ollama's {"error":message}; the worker's own {"error":{"code","message"}}.
enum class ErrorForm : uint8_t {
  own,
  openai,
  anthropic,
  ollama,
  by_version,  // Anthropic's if the client sends "anthropic-version", else OpenAI's
};

struct Request {
  std::string method;  // as sent, e.g. "GET"
  std::string path;    // target without the query
  std::string query;   // text after '?', undecoded
  Headers headers;     // names in lower case
  std::string body;
  std::shared_ptr<BodyFile> file;  // the body, if the route's judge said so; `body` is empty then
  Headers params;                  // values of the route's {name} segments
  std::string correlation_id;      // the client's if valid, else as request_id
  std::string request_id;          // X-Request-ID if valid, else as correlation_id or a fresh UUID
  std::string remote;              // peer address, for logs
  std::string key_name;            // name of the request's key; empty if no key is needed

  ActiveSpan trace;  // of this request; without a tracer if it is not traced

  ErrorForm errors = ErrorForm::own;  // of the route; see Router::error_form()

  std::string behalf;  // the real sender: the header X-Rbee-Sender, if sent with the own token

  // Held as long as the body or what was made of it; null: the body is small.
  std::shared_ptr<BodyRoom::Part> room;

  // The client: `behalf`, else the key's name, else the address.
  const std::string& sender() const {
    if (!behalf.empty()) return behalf;
    return key_name.empty() ? remote : key_name;
  }

  // Value of the first such header (name in lower case); empty if absent.
  std::string_view header(std::string_view name) const;
  // Value of a {name} segment of the matched pattern; empty if the pattern has none.
  std::string_view param(std::string_view name) const;
};

// Why a request is refused, for the log. It quotes nothing that the client sent except names of
// fields.
struct RefusalReason {
  std::string code;        // as sent to the client; in Anthropic's form the type
  std::string field;       // the first invalid one; empty if none is named
  std::string constraint;  // allowed values of the field, e.g. "range(0..=2)"; empty: unknown
};

// At most one of `events` and `later` is set. With `events`, `body` is unused. With `later`, a
// later response replaces all of this one, and may have events.
struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  Headers headers;                         // in addition to those of every response
  RefusalReason reason{};                  // if the body's form has no place for it
  std::shared_ptr<EventQueue> events;      // body sent while its events come
  std::shared_ptr<DelayedResponse> later;  // sent when a producer sets it
};

Response text_response(int status, std::string body);
Response json_response(int status, std::string json);
// {"error":{"code":...,"message":...}}
Response error_response(int status, std::string_view code, std::string_view message);

// "Not Found" for 404; "Unknown" for codes without a name.
std::string_view reason_phrase(int status);
// Equal except for the case of ASCII letters.
bool same_text(std::string_view a, std::string_view b);
// Any bytes as logs and spans show them: '?' replaces all but printable ASCII.
std::string printable(std::string text);
// A JSON string literal; the caller must pass UTF-8.
std::string json_quote(std::string_view text);

struct HeadOptions {
  bool http_1_0 = false;    // version of the request
  bool keep_alive = false;  // whether the connection stays open
  std::string server;       // value of the Server header
  std::string origin;       // of Access-Control-Allow-Origin; empty = none
};
// Status line and headers, with the final empty line. A 503 says when to try again. On paths of
// Anthropic's API the request's id is also in request-id. Event streams are chunked for HTTP/1.1;
// for HTTP/1.0 they end with the connection.
std::string serialize_head(const Response& response, const Request& request,
                           const HeadOptions& options);
// One chunk of a chunked body. An empty `data` gives the last chunk.
std::string chunk(std::string_view data);

}  // namespace rbee::server
