#pragma once
// Answers of the worker's own routes for text.

#include <memory>
#include <string>

#include "server/llm/reply.h"

namespace rbee::server {

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
