#pragma once
// A TLS client that counts the bytes on the wire and can break off after any of them.

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rbee::testing {

class TlsClient {
 public:
  // Accepts any certificate. After sending `budget` bytes in all, including the handshake, it
  // breaks off: it closes the socket.
  explicit TlsClient(uint16_t port, size_t budget = SIZE_MAX);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // False if the connection or the budget ended first.
  bool handshake();
  bool send(std::string_view text);
  // What the server sends up to and including `mark`; less if the connection ends or a minute
  // passes.
  std::string read_until(std::string_view mark);
  // The same, but reads at most the next `count` bytes on the wire.
  void read_bytes_until(size_t count, std::string_view mark);
  size_t sent() const { return sent_; }
  size_t received() const { return received_; }
  // reset: the server sees an error, not an end.
  void close(bool reset);

 private:
  bool flush();
  bool fill();

  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  BIO* in_;   // owned by ssl_
  BIO* out_;  // owned by ssl_
  int socket_ = -1;
  size_t budget_;
  size_t wanted_ = SIZE_MAX;  // bytes still to read
  size_t sent_ = 0;
  size_t received_ = 0;
  std::string text_;
};

// A socket connected to a port of this machine. Throws.
int connect_to(uint16_t port);
// Closes it; reset: the other side sees an error, not an end.
void close_socket(int socket, bool reset);
// Drops `count` bytes of input; fewer if they end with `mark` before, or the connection ends.
void skip_bytes_until(int socket, size_t count, std::string_view mark);

}  // namespace rbee::testing
