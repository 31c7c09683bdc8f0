#pragma once
// Data shared by the connections of one server. Internal to server/http.

#include <algorithm>
#include <memory>
#include <optional>

#include "server/http/auth.h"
#include "server/http/body_room.h"
#include "server/http/body_writers.h"
#include "server/http/router.h"
#include "server/http/server.h"
#include "server/http/side_threads.h"
#include "server/http/transport.h"
#include "server/http/turns.h"

namespace rbee::server {

inline constexpr size_t kBodyThreads = 2;
inline constexpr size_t kWriterThreads = 2;

// Bodies up to this size are handled on the connections' thread, within a few milliseconds.
inline constexpr size_t kSmallBody = size_t{64} << 10;

// Outlives the connections; changes only on the server's thread.
struct ConnectionContext {
  ServerOptions options;
  Router router;
  ApiKeys keys;
  std::shared_ptr<boost::asio::ssl::context> tls;  // null: plain HTTP
  bool stopping = false;
  // Answer only to names of this machine: programs on it may use the server, web pages may not.
  bool local_names_only = false;
  // Handlers of large bodies run here, because parsing them would delay other clients too long.
  // Only one runs for each client, so that a client with many leaves a thread to others.
  std::unique_ptr<SideThreads> bodies =
      std::make_unique<SideThreads>(SideThreads::Options{.threads = kBodyThreads, .most_each = 1});
  std::unique_ptr<BodyWriters> writers = std::make_unique<BodyWriters>(kWriterThreads);
  BodyRoom room{std::max(options.max_held_bytes, 4 * options.max_body_bytes)};
  std::unique_ptr<Turns> turns = std::make_unique<Turns>();
};

// Takes room for so many bytes of the request's body. The answer if there is too little.
std::optional<Response> refuse_bytes(const ConnectionContext& context, Request& request,
                                     size_t bytes);

// Runs the handler of a large body, on a thread of `bodies`, when it is the client's turn.
Response run_beside(const ConnectionContext& context, const Route& route, const Request& head,
                    std::string body);

}  // namespace rbee::server
