#pragma once
// One exchange with a worker on this machine: a request is sent, the answer handed on while it
// comes. Internal to server/front: all on the io_context's thread.

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

struct UpstreamHead {
  int status = 0;
  std::string content_type;
  Headers headers;  // the others, without those of the connection; names in lower case
};

enum class UpstreamEnd : uint8_t {
  whole,        // the answer ended as it should
  unreachable,  // nobody took the request: it was not begun
  broken,       // the connection ended before the answer did
};

struct UpstreamRequest {
  uint16_t port = 0;
  std::string head;        // as it is sent, with the empty line
  std::string_view body;   // outlives on_data
  bool head_only = false;  // the answer has no body, whatever its head says
  std::function<void(UpstreamHead head)> on_head;
  std::function<void(std::string data)> on_data;
  std::function<void(UpstreamEnd end)> on_end;  // last
};

class Upstream {
 public:
  virtual ~Upstream() = default;
  // Closes the connection. Nothing is called any more.
  virtual void cancel() = 0;
};

std::shared_ptr<Upstream> start_upstream(boost::asio::io_context& io, UpstreamRequest request);

}  // namespace rbee::server
