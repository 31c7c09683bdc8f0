#pragma once
// How one job's events are told to its client. Calls come one at a time; end() or error() is last.

#include <memory>
#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "server/http/mailbox.h"
#include "server/wire/error_map.h"
#include "server/wire/text_events.h"

namespace rbee::server {

// The end of every stream.
void finish_stream(EventQueue& queue);

class Reply {
 public:
  virtual ~Reply() = default;
  virtual void started(const StartedEvent& event) = 0;
  // How far the prompt's evaluation is, where the request asks for it.
  virtual void progress(const ProgressEvent&) {}
  // Before scored(): how far the answer is with the next piece.
  virtual void timed(const ProgressEvent&) {}
  // Before all text: the prompt's tokens, where the request asks for their figures.
  virtual void prompt(std::vector<TokenLogprobs>) {}
  // Before token(): what the text's tokens scored, where the request asks for it.
  virtual void scored(std::vector<TokenLogprobs>) {}
  virtual void token(std::string_view text, int32_t index) = 0;
  // Where the request wants them told apart: reasoning; a call, and then pieces of its arguments.
  // call: which of the answer's, from 0.
  virtual void reasoning(std::string_view) {}
  virtual void call(int32_t, const engine::CallBegin&) {}
  virtual void arguments(int32_t, std::string_view) {}
  // duration_ms: since the request's arrival.
  virtual void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) = 0;
  virtual void error(const WireError& error, std::string_view message) = 0;
};

}  // namespace rbee::server
