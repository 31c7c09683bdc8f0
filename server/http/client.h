#pragma once
// An HTTP/1.1 client, plain or through TLS, for messages to the hive or a collector: one POST, one
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

// Files in PEM form for https servers; empty = none. Each request reads them, so renewed files take
// effect.
struct ClientTls {
  std::string authorities;  // trusted certificate authorities, see tls_client_context()
  std::string certificate;  // the client's own and its chain
  std::string key;          // of `certificate`, without a password
};
// Throws invalid_argument, naming the file, if the client's certificate or key is invalid, or they
// do not belong together; logs a certificate that is expired or not yet valid.
void check_certificate(const ClientTls& tls);

struct PostOptions {
  Headers headers;  // of each request, besides its own
  ClientTls tls;
};

class PostClient {
 public:
  explicit PostClient(PostOptions options = {});
  ~PostClient();
  PostClient(const PostClient&) = delete;
  PostClient& operator=(const PostClient&) = delete;

  // Sends `json` and returns the response's status. Throws io if none comes in time, and
  // invalid_argument for invalid files of ClientTls.
  int post(const Url& url, std::string_view path, std::string_view json,
           std::chrono::milliseconds timeout);
  // Makes a running post(), and all later ones, fail at once. From any thread.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
