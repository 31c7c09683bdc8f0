#pragma once
// What the connections of one server share. Internal to server/http.

#include <boost/asio/thread_pool.hpp>
#include <memory>

#include "server/http/auth.h"
#include "server/http/router.h"
#include "server/http/server.h"
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
  // Handlers of large bodies run here: reading them takes longer than other clients may wait.
  std::unique_ptr<boost::asio::thread_pool> bodies =
      std::make_unique<boost::asio::thread_pool>(kBodyThreads);
  std::unique_ptr<Turns> turns = std::make_unique<Turns>();
};

}  // namespace rbee::server
