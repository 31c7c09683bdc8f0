#pragma once
// What the connections of one server share. Internal to server/http.

#include <memory>

#include "server/http/auth.h"
#include "server/http/router.h"
#include "server/http/server.h"
#include "server/http/side_threads.h"
#include "server/http/transport.h"
#include "server/http/turns.h"

namespace rbee::server {

inline constexpr size_t kBodyThreads = 2;

// Outlives the connections; changed on the server's thread only.
struct ConnectionContext {
  ServerOptions options;
  Router router;
  ApiKeys keys;
  std::shared_ptr<boost::asio::ssl::context> tls;  // null: plain HTTP
  bool stopping = false;
  // Answers only to names of this machine: it is open to whoever runs on it, not to web pages.
  bool local_names_only = false;
  // Handlers of large bodies run here: reading them takes longer than other clients may wait. Of
  // one client one runs at a time, so that a crowd of one client leaves a thread to others.
  std::unique_ptr<SideThreads> bodies =
      std::make_unique<SideThreads>(SideThreads::Options{.threads = kBodyThreads, .most_each = 1});
  std::unique_ptr<Turns> turns = std::make_unique<Turns>();
};

// What the handler of a large body answers, from a thread of bodies, when its client's turn comes.
Response run_beside(const ConnectionContext& context, const Route& route, const Request& head,
                    std::string body);

}  // namespace rbee::server
