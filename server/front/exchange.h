#pragma once
// A client's request on its way through the front. Internal to server/front: all on the
// io_context's thread, but for the mailboxes.

#include <chrono>
#include <memory>
#include <string>

#include "server/front/replica.h"
#include "server/front/routing.h"
#include "server/http/mailbox.h"

namespace rbee::server {

struct Exchange {
  Request request;
  Wanted wanted;
  std::shared_ptr<DelayedResponse> later;  // where the answer goes
  std::shared_ptr<EventQueue> events;      // where its events go; null: it has no head yet
  size_t model = 0;                        // index of the model that answers
  std::shared_ptr<Replica> replica;        // that works on it, or alone may; null: none yet
  std::shared_ptr<Upstream> upstream;
  std::chrono::steady_clock::time_point deadline;  // to find a worker
  int tries = 0;                                   // that ended in the middle
  UpstreamHead head;
  std::string body;     // of an answer that is no event stream; of one, what has no end yet
  std::string opening;  // events that are held back while another worker may take the request
  bool begun = false;   // its client has an event
  bool over = false;    // answered or left

  bool streams() const { return head.content_type.starts_with("text/event-stream"); }
};

// Facts of a GET are asked for where a client only wants its head, but for a job's stream, which
// is given once.
std::string_view upstream_method(const Exchange& exchange);
// The request's head as a worker is sent it, with the empty line.
std::string upstream_head(const Exchange& exchange, const Replica& replica);
// The answer's head; an event stream's events come through `events`.
Response response_of(const UpstreamHead& head);

}  // namespace rbee::server
