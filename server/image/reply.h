#pragma once
// How one job's events reach its client. Calls do not overlap; end() or error() is last.

#include <memory>
#include <string>
#include <vector>

#include "server/http/mailbox.h"
#include "server/wire/error_map.h"
#include "server/wire/image_events.h"

namespace rbee::server {

class ImageReply {
 public:
  virtual ~ImageReply() = default;
  virtual void started(const ImageStartedEvent&) {}
  virtual void progress(const ImageProgressEvent&) {}
  virtual void preview(const ImageProgressEvent&, std::string_view /*base64*/, int32_t /*index*/) {}
  virtual void image(const ImageResult&) {}
  virtual void end(const std::vector<ImageResult>& images, const ImageTimes& times) = 0;
  virtual void error(const WireError& error, std::string_view message) = 0;
  // Whether an interrupted request returns its pictures so far, rather than an error.
  virtual bool takes_unfinished() const { return false; }
};

}  // namespace rbee::server
