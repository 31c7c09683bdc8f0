#pragma once
// OpenAI's answers: several choices, each a job of the engine, are one answer.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/llm/reply.h"

namespace rbee::server {

// What the choices of one answer share. Their jobs may end on several threads.
struct OpenAiChoices {
  OpenAiAnswer answer;
  bool include_usage = false;    // of a stream
  bool logprobs = false;         // shown
  size_t wanted = 1;             // of the choices, the best by the mean of their log probabilities
  std::function<void()> cancel;  // ends all jobs; may be called on any thread

  std::mutex mutex;  // guards what follows
  size_t left = 1;   // jobs that have not ended
  bool failed = false;
  OpenAiUsage usage;
  std::vector<OpenAiChoice> done;  // of an answer in one response
};

// A choice of an answer in pieces and [DONE].
class OpenAiStream final : public Reply {
 public:
  OpenAiStream(std::shared_ptr<EventQueue> queue, std::shared_ptr<OpenAiChoices> choices,
               int32_t index)
      : queue_(std::move(queue)), choices_(std::move(choices)), index_(index) {}
  void started(const StartedEvent&) override;
  void scored(std::vector<OpenAiScored> tokens) override;
  void token(std::string_view text, int32_t index) override;
  void reasoning(std::string_view text) override;
  void call(int32_t call, const engine::CallBegin& begin) override;
  void arguments(int32_t call, std::string_view json) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  void push(std::string json);

  std::shared_ptr<EventQueue> queue_;
  const std::shared_ptr<OpenAiChoices> choices_;
  const int32_t index_;
  OpenAiLogprobs logprobs_;  // of the next piece
};

// A choice of an answer in one response.
class OpenAiText final : public Reply {
 public:
  OpenAiText(std::shared_ptr<DelayedResponse> response, std::shared_ptr<OpenAiChoices> choices,
             int32_t index)
      : response_(std::move(response)), choices_(std::move(choices)) {
    choice_.index = index;
  }
  void started(const StartedEvent&) override {}
  void scored(std::vector<OpenAiScored> tokens) override;
  void token(std::string_view text, int32_t index) override;
  void reasoning(std::string_view text) override;
  void call(int32_t call, const engine::CallBegin& begin) override;
  void arguments(int32_t call, std::string_view json) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<DelayedResponse> response_;
  const std::shared_ptr<OpenAiChoices> choices_;
  OpenAiChoice choice_;
};

}  // namespace rbee::server
