#pragma once
// One client's connection. Internal to server/http: all calls on the server's thread.

#include <functional>
#include <memory>

#include "server/http/connection_context.h"
#include "server/http/transport.h"

namespace rbee::server {

class Connection {
 public:
  virtual ~Connection() = default;

  // `closed` is called once, when the connection is over and may be forgotten.
  virtual void start(std::function<void()> closed) = 0;
  // Answers 503 instead of reading requests.
  virtual void start_refused(std::function<void()> closed) = 0;
  // A request's body comes, or its answer is made or written.
  virtual bool busy() const = 0;
  // Closes at once when idle, else after the running answer; a request that is not whole gets 503.
  virtual void finish() = 0;
  // Closes at once; a running answer is abandoned.
  virtual void close() = 0;
};

std::shared_ptr<Connection> make_connection(std::unique_ptr<Transport> transport,
                                            const ConnectionContext& context);

}  // namespace rbee::server
