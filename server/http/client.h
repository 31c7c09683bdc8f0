#pragma once
// A plain HTTP/1.1 client for notices to the hive or a collector: one POST, one status.

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
};
// "http://host[:port][/path]". Throws invalid_argument, for https as well.
Url parse_url(std::string_view text);

class PostClient {
 public:
  // headers: of each request, besides its own.
  explicit PostClient(Headers headers = {});
  ~PostClient();
  PostClient(const PostClient&) = delete;
  PostClient& operator=(const PostClient&) = delete;

  // Sends `json` and returns the response's status. Throws io when there is none within the time.
  int post(const Url& url, std::string_view path, std::string_view json,
           std::chrono::milliseconds timeout);
  // Ends a running post(), and all later ones at once, with an error. Any thread.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
