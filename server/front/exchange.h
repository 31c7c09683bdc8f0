#pragma once
// A client's request on its way through the front. Internal to server/front: used on the
// io_context's thread, except for the mailboxes.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "server/apis/ollama/record.h"
#include "server/front/replica.h"
#include "server/front/routing.h"
#include "server/http/mailbox.h"

namespace rbee::server {

struct Exchange {
  Request request;
  Wanted wanted;                               // of a made model: the one that answers for it
  std::shared_ptr<const OllamaRecord> record;  // the made model that it names; null: none
  std::shared_ptr<DelayedResponse> later;      // destination of the answer
  std::shared_ptr<EventQueue> events;          // destination of its events; null: no head yet
  std::optional<uint64_t> looked_for;          // of the finder, while it looks for the model
  std::optional<size_t> model;       // index of the model that answers; nothing: not found
  int failures = 0;                  // loads of this model that had failed when the request came
  std::shared_ptr<Replica> replica;  // works on it, or is the only one that may; null: none yet
  std::shared_ptr<Upstream> upstream;
  std::chrono::steady_clock::time_point deadline;  // to find a worker
  int tries = 0;                                   // tries that broke off
  UpstreamHead head;
  std::string body;     // of an answer that is no stream; else the unfinished event
  std::string opening;  // events held back while another worker may take the request
  bool begun = false;   // its client has an event
  bool listed = false;  // it names no model, and those that came since were looked for
  bool over = false;    // answered, or its client left

  // Nothing for an answer that is no stream.
  std::optional<StreamForm> stream() const { return stream_form(head.content_type); }
};

// HEAD is sent as GET, except for a job's stream, which can be read only once.
std::string_view upstream_method(const Exchange& exchange);
// The request's head for a worker, with the empty line.
std::string upstream_head(const Exchange& exchange, const Replica& replica);
// The answer's head; an event stream's events come through `events`.
Response response_of(const UpstreamHead& head);

}  // namespace rbee::server
