#pragma once
// How one job's events reach its client. Calls do not overlap; end() or error() is last.

#include <memory>
#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "server/http/mailbox.h"
#include "server/wire/error_map.h"
#include "server/wire/text_events.h"

namespace rbee::server {

// Ends a stream.
void finish_stream(EventQueue& queue);

class Reply {
 public:
  virtual ~Reply() = default;
  virtual void started(const StartedEvent& event) = 0;
  // Progress of the prompt's evaluation, if the request asks for it.
  virtual void progress(const ProgressEvent&) {}
  // Comes before scored(): progress of the answer with the next piece.
  virtual void timed(const ProgressEvent&) {}
  // Comes before all text: the prompt's tokens, if the request asks for their figures.
  virtual void prompt(std::vector<TokenLogprobs>) {}
  // Comes before token(): figures of the text's tokens, if the request asks for them.
  virtual void scored(std::vector<TokenLogprobs>) {}
  virtual void token(std::string_view text, int32_t index) = 0;
  // If the request wants them split off: reasoning; a call, then pieces of its arguments. call: its
  // number in the answer, from 0.
  virtual void reasoning(std::string_view) {}
  virtual void call(int32_t, const engine::CallBegin&) {}
  virtual void arguments(int32_t, std::string_view) {}
  // duration_ms: since the request's arrival.
  virtual void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) = 0;
  virtual void error(const WireError& error, std::string_view message) = 0;
};

}  // namespace rbee::server
