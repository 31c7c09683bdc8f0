#pragma once
// How one job's events are told to its client. Calls come one at a time; end() or error() is last.

#include <memory>
#include <string>
#include <vector>

#include "rbee/engine/engine.h"
#include "server/contract/openai_responses.h"
#include "server/http/mailbox.h"

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
  virtual void prompt(std::vector<OpenAiScored>) {}
  // Before token(): what the text's tokens scored, where the request asks for it.
  virtual void scored(std::vector<OpenAiScored>) {}
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

// Typed events and [DONE], for /v1/jobs.
class JobStream final : public Reply {
 public:
  explicit JobStream(std::shared_ptr<EventQueue> queue) : queue_(std::move(queue)) {}
  void started(const StartedEvent& event) override;
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<EventQueue> queue_;
};

// {"token":...} lines and [DONE], for /v1/infer with "stream": true.
class InferStream final : public Reply {
 public:
  explicit InferStream(std::shared_ptr<EventQueue> queue) : queue_(std::move(queue)) {}
  void started(const StartedEvent&) override {}
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<EventQueue> queue_;
};

// The whole text in one response, for /v1/infer.
class InferText final : public Reply {
 public:
  explicit InferText(std::shared_ptr<DelayedResponse> response) : response_(std::move(response)) {}
  void started(const StartedEvent&) override {}
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<DelayedResponse> response_;
  std::string text_;
};

}  // namespace rbee::server
