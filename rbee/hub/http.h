#pragma once
// HTTP requests to the hub and to the hosts that it names. libcurl does the work: proxies,
// NO_PROXY, certificates of the system. Redirects are for the caller.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace rbee::hub {

// Takes a part of the body; false ends the request.
using BodySink = std::function<bool(std::string_view bytes)>;

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // empty where a sink took it

  // Empty if there is none. `name`: in lower case.
  const std::string& header(const std::string& name) const;
};

struct HttpRequest {
  std::string url;
  bool head = false;
  std::string token{};  // sent as a bearer's; empty = none
  int64_t begin = -1;   // first byte asked for; -1 = the whole
  int64_t end = -1;     // one past the last; -1 = the rest
  // Of a redirect: no address of the inner network is connected to, whatever its name resolves to.
  bool guarded = false;
  bool loopback_allowed = false;  // but this machine, where the endpoint itself is there
  // Takes the body of answers 200 and 206 if there is one; other bodies are not read then. Without
  // a sink the whole request has two minutes.
  BodySink sink{};
  // Called about once a second, also if nothing comes; false ends the request.
  std::function<bool()> going_on{};
  // Called with the headers, before the sink; false ends the request.
  std::function<bool(const HttpResponse&)> on_headers{};
};

// Keeps connections open between requests. One thread at a time.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws io if no whole answer comes, unless a function of the request ended it; unsupported
  // if the address is a private one that a redirect may not lead to.
  HttpResponse send(const HttpRequest& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::hub
