#pragma once
// Finds the handler for a method and path.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace rbee::server {

// Must return at once: it runs on the connections' thread, or for large bodies on another
// (server.h).
using Handler = std::function<Response(const Request&)>;

// What a handler with a body decides from a request's head, which has the route's parameters,
// before the body is read.
struct HeadVerdict {
  std::optional<Response> refusal;
  // For this request; of a body in memory at most the server's.
  std::optional<size_t> max_body_bytes;
  std::shared_ptr<BodyFile> file;  // where the body goes; null: into Request::body
};
using HeadJudge = std::function<HeadVerdict(const Request&)>;

// Turns an exception of a handler into a response.
using ErrorAnswer = std::function<Response(const std::exception_ptr&)>;

enum class Access : uint8_t {
  token,   // needs the bearer token if one is set
  anyone,  // needs none
};

enum class Body : uint8_t {
  none,  // a body is read and ignored
  json,  // Content-Type must be JSON
  any,   // JSON, whatever Content-Type says: Ollama's examples send it as curl's form
};

// What the front must know of a route, beyond its path, to pass a request on: what the request
// does, and which API's words the body is in.
enum class Operation : uint8_t {
  other,
  page,
  create_job,
  stream_job,
  cancel_job,  // named by the body
  openai_chat,
  ollama_chat,
  ollama_generate,
  ollama_show,
};

struct Route {
  std::string method;
  // "/v1/jobs/{job_id}/stream": a {name} matches one segment; a {+name} at the end matches all
  // remaining segments, with their slashes (RFC 6570, section 3.2.3). Both are percent-decoded.
  std::string pattern;
  Handler handler;
  Access access = Access::token;
  Body body = Body::none;
  ErrorForm errors = ErrorForm::own;  // of the server's own errors for this route
  HeadJudge judge = {};               // on the connections' thread; may be empty
  Operation operation = Operation::other;
  // Whether it changes anything or makes the model work; nothing: unless the method is GET. Pages
  // of other sites may send only what does not, without keys.
  std::optional<bool> changes = {};
};

// A route as data, for tables: its handler gets the service that has the table.
template <typename Service>
struct ServiceRoute {
  std::string_view method;
  std::string_view pattern;
  Response (*handler)(Service&, const Request&);
  Body body = Body::none;
  ErrorForm errors = ErrorForm::own;
  Operation operation = Operation::other;
  Access access = Access::token;
  bool named_events = false;         // a stream's events have names besides their data
  std::optional<bool> changes = {};  // see Route
};

class Router {
 public:
  // Throws invalid_argument for a pattern that does not begin with '/'.
  void add(Route route);

  // The service must outlive the router.
  template <typename Service>
  void add(const ServiceRoute<Service>& route, Service& service) {
    add({.method = std::string(route.method),
         .pattern = std::string(route.pattern),
         .handler = [handler = route.handler,
                     &service](const Request& request) { return handler(service, request); },
         .access = route.access,
         .body = route.body,
         .errors = route.errors,
         .operation = route.operation,
         .changes = route.changes});
  }

  // Answers requests that match no route, with any method and path; needs the token.
  struct Fallback {
    Handler handler;
    HeadJudge judge;
    std::function<ErrorForm(std::string_view path)> error_form;
    // See changes(); empty: only GET changes nothing.
    std::function<bool(std::string_view method, std::string_view path)> changes = {};
  };
  void set_fallback(Fallback fallback);

  // The default reveals nothing of the exception: 500 INTERNAL.
  void set_error_answer(ErrorAnswer answer) { error_answer_ = std::move(answer); }

  const std::vector<Route>& routes() const { return routes_; }

  struct Match {
    const Route* route = nullptr;  // null: no such path, or not with this method
    Headers params;
    std::string allow;  // methods of the path, for 405; empty if the path is unknown
  };
  // HEAD finds the GET route.
  Match find(std::string_view method, std::string_view path) const;
  struct PathMatch {
    size_t route = 0;  // in routes()
    Headers params;
  };
  // Whether such a request changes anything, see Route::changes; HEAD never does.
  bool changes(std::string_view method, std::string_view path) const;
  // The first route with this path, for any method; nothing: none.
  std::optional<PathMatch> find_path(std::string_view path) const;
  // Of that route, else of the one nearest above the path ("/v1/messages" of "/v1/messages/x"),
  // else of all routes that begin with its first word ("/api") if these have one form, else of the
  // fallback, else OpenAI's.
  ErrorForm error_form(std::string_view path) const;
  // Runs the route's handler; its exceptions become a response and a line in the log.
  Response run(const Route& route, const Request& request) const;

 private:
  std::vector<Route> routes_;
  std::optional<Route> fallback_;
  decltype(Fallback::error_form) fallback_errors_;
  decltype(Fallback::changes) fallback_changes_;
  ErrorAnswer error_answer_;
};

// True for application/json and application/<x>+json, with or without parameters.
bool is_json_type(std::string_view content_type);

// Value of the first such field of a query, e.g. "b c" of "x=1&a=b%20c"; empty if there is none.
std::string query_value(std::string_view query, std::string_view name);

}  // namespace rbee::server
