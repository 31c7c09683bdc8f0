#pragma once
// What the connections of one server share. Internal to server/http.

#include "server/http/auth.h"
#include "server/http/router.h"
#include "server/http/server.h"
#include "server/http/transport.h"

namespace rbee::server {

// Outlives the connections; changed on the server's thread only.
struct ConnectionContext {
  ServerOptions options;
  Router router;
  ApiKeys keys;
  std::shared_ptr<boost::asio::ssl::context> tls;  // null: plain HTTP
  bool stopping = false;
  // Answers only to names of this machine: it is open to whoever runs on it, not to web pages.
  bool local_names_only = false;
};

}  // namespace rbee::server
