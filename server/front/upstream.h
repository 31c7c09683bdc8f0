#pragma once
// One exchange with a worker on this machine: sends a request and passes the answer on as it comes.
// Internal to server/front: used on the io_context's thread.

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
  Headers headers;  // other headers, without those of the connection; names in lower case
};

enum class UpstreamEnd : uint8_t {
  whole,        // the answer is complete
  unreachable,  // no connection: the request was not begun
  broken,       // the connection ended before the answer did
};

struct UpstreamRequest {
  uint16_t port = 0;
  std::string head;        // as sent, with the empty line
  std::string_view body;   // must live until on_end
  bool head_only = false;  // the answer has no body, whatever its head says
  std::function<void(UpstreamHead head)> on_head;
  std::function<void(std::string data)> on_data;
  std::function<void(UpstreamEnd end)> on_end;  // called last
};

class Upstream {
 public:
  virtual ~Upstream() = default;
  // Closes the connection. No callback is called any more.
  virtual void cancel() = 0;
};

std::shared_ptr<Upstream> start_upstream(boost::asio::io_context& io, UpstreamRequest request);

}  // namespace rbee::server
