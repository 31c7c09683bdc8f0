#pragma once
// A client that sends exactly the given bytes, over a plain socket.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rbee::testing {

struct RawResponse {
  int status = 0;                              // 0: the connection ended first
  std::map<std::string, std::string> headers;  // names in lower case; repeated: joined by ", "
  std::string body;                            // chunks put together
};

class RawClient {
 public:
  // receive_buffer: bytes for the socket; 0 = the system's default. address: the server's.
  explicit RawClient(uint16_t port, int receive_buffer = 0, const char* address = "127.0.0.1");
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False if the server has closed the connection.
  bool send(std::string_view bytes);
  void half_close();
  void close();

  // One response with its whole body. has_body: false for answers to HEAD.
  RawResponse read_response(bool has_body = true);
  // Status line and headers only.
  RawResponse read_head();
  // Bytes up to and including `mark`; fewer if the connection ends or a minute passes.
  std::string read_until(std::string_view mark);
  // True if the server closes within `patience`; drops further input.
  bool wait_closed(std::chrono::milliseconds patience = std::chrono::seconds(60));

 private:
  bool fill();  // reads more into input_; false at the end
  std::string read_chunks();

  int socket_ = -1;
  std::string input_;
};

// "METHOD path" with a Host header; with a body, also Content-Type: application/json.
std::string request(std::string_view method, std::string_view path, std::string_view body = {},
                    std::string_view extra_headers = {});
RawResponse ask(uint16_t port, std::string_view bytes, const char* address = "127.0.0.1");

}  // namespace rbee::testing
