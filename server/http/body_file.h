#pragma once
// A body that goes to a file as it comes, instead of into Request::body.

#include <optional>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

// Made by a route's judge for one request. The server drops it when the request is over; the
// handler may keep it. Of a file that nobody kept, the destructor leaves no trace.
class BodyFile {
 public:
  BodyFile() = default;
  virtual ~BodyFile() = default;
  BodyFile(const BodyFile&) = delete;
  BodyFile& operator=(const BodyFile&) = delete;

  // The next bytes of the body. On a thread that may wait for the disk, one call at a time. Returns
  // the request's answer if the file cannot take them; then no more come, and the handler is not
  // called.
  virtual std::optional<Response> write(std::string_view bytes) = 0;
};

}  // namespace rbee::server
