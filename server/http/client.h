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

// Files in PEM form for servers of https; empty = none. They are read for each request, so that
// renewed ones count.
struct ClientTls {
  std::string authorities;  // who may vouch for a server, see tls_client_context()
  std::string certificate;  // the client's own, and those that vouch for it
  std::string key;          // of `certificate`, without a password
};
// Throws invalid_argument naming the file where the client's certificate and key are none, or do
// not belong together; logs a certificate outside its time.
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

  // Sends `json` and returns the response's status. Throws io when there is none within the time,
  // and invalid_argument for files of ClientTls that are none.
  int post(const Url& url, std::string_view path, std::string_view json,
           std::chrono::milliseconds timeout);
  // Ends a running post(), and all later ones at once, with an error. Any thread.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
