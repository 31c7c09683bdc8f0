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

  // Calls `closed` once, when the connection is over and may be forgotten.
  virtual void start(std::function<void()> closed) = 0;
  // Answers 503 instead of reading requests.
  virtual void start_refused(std::function<void()> closed) = 0;
  // Whether it is reading a request's body, or making or writing an answer.
  virtual bool busy() const = 0;
  // Closes at once if idle, else after the current answer; an unfinished request gets 503.
  virtual void finish() = 0;
  // Closes at once and abandons the current answer.
  virtual void close() = 0;
};

std::shared_ptr<Connection> make_connection(std::unique_ptr<Transport> transport,
                                            const ConnectionContext& context);

}  // namespace rbee::server
