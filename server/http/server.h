#pragma once
// The HTTP/1.1 listener. One thread runs every connection, and the handlers of bodies up to 64 KiB;
// other threads run those of larger bodies. Slow answers come through an EventQueue or a
// DelayedResponse. On a loopback address without a token, a Host header must name this machine (see
// local_host.h), else the answer is 403: this stops web pages whose name points here.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/http/auth.h"
#include "server/http/router.h"

namespace rbee::server {

struct ServerOptions {
  std::string host = "127.0.0.1";     // address or name to listen on
  uint16_t port = 0;                  // 0 = any free one
  std::string name = "rbee";          // value of the Server header
  size_t max_connections = 512;       // more get 503
  size_t max_client_connections = 0;  // the same for each address; 0 = no such limit
  // Files in PEM form, see tls_context(); empty = plain HTTP.
  std::string tls_certificate;
  std::string tls_key;
  std::vector<std::string> cors_origins;  // pages that may ask (Fetch, section 3.2); "*" = all
  std::shared_ptr<Tracer> tracer;         // for spans of requests; null: none
  size_t max_header_bytes = 16 * 1024;
  size_t max_header_fields = 100;
  size_t max_body_bytes = 1024 * 1024;
  // Of all bodies above 64 KiB until their answers are written, and of those of jobs until their
  // end (body_room.h); more get 429. At least four times max_body_bytes, so that each client may
  // send two of the largest.
  size_t max_held_bytes = size_t{256} << 20;
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte to the empty line
  // In each such time, the body must end or least_body_bytes more of it must arrive.
  std::chrono::milliseconds body_timeout{30'000};
  size_t least_body_bytes = 120 * 1024;
  std::chrono::milliseconds idle_timeout{75'000};      // between requests
  std::chrono::milliseconds write_timeout{60'000};     // for a client that reads nothing at all
  std::chrono::milliseconds comment_interval{15'000};  // between comments on a silent stream
};

class Server {
 public:
  // Listens and starts the thread. Throws io if the address cannot be bound, and invalid_argument
  // for invalid TLS files.
  Server(ServerOptions options, Router router, const ApiKeys& keys);
  // Takes over the listening socket of `before`, so that no client is refused between the two; it
  // ignores the host and port of `options`. From then on `before` accepts no connection. It serves
  // those that it has until its stop().
  Server(ServerOptions options, Router router, const ApiKeys& keys, Server& before);
  ~Server();  // stop(0)
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  // Reads the TLS files again, for later connections. Throws invalid_argument.
  void reload_tls();
  // Requests that come after its return need these keys; it cannot change whether a key is needed
  // at all. Do not call it from handlers, because it waits for their thread, nor after stop().
  void set_keys(ApiKeys keys);
  // Whether some request is not fully answered: its body is still coming, or its answer is still
  // being written. Do not call it from handlers, nor after stop().
  bool busy() const;
  // Accepts no new connection, closes idle ones, answers 503 to unfinished requests, lets current
  // answers end within `grace`, closes the rest and joins the thread. Idempotent.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
