#pragma once
// An HTTP/1.1 client, plain or through TLS, for notices to the hive or a collector: one POST, one
// status.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

struct Url {
  std::string host;  // without brackets
  uint16_t port = 80;
  std::string path;  // begins with '/', no trailing one; empty for the root
  bool tls = false;
};
// "http://host[:port][/path]", or https. Throws invalid_argument.
Url parse_url(std::string_view text);

struct PostOptions {
  Headers headers;  // of each request, besides its own
  // File in PEM form with those that may vouch for a server, see tls_client_context(). It is read
  // for each request, so that a renewed one counts.
  std::string authorities;
};

class PostClient {
 public:
  explicit PostClient(PostOptions options = {});
  ~PostClient();
  PostClient(const PostClient&) = delete;
  PostClient& operator=(const PostClient&) = delete;

  // Sends `json` and returns the response's status. Throws io when there is none within the time,
  // and invalid_argument for a file of authorities that is none.
  int post(const Url& url, std::string_view path, std::string_view json,
           std::chrono::milliseconds timeout);
  // Ends a running post(), and all later ones at once, with an error. Any thread.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
