#pragma once
// Answers in llama-server's own form.

#include <memory>
#include <string>
#include <vector>

#include "server/contract/llama_responses.h"
#include "server/llm/reply.h"

namespace rbee::server {

// Pieces, the last of which says "stop": true; no [DONE] follows.
class LlamaStream final : public Reply {
 public:
  LlamaStream(std::shared_ptr<EventQueue> queue, LlamaAnswer answer)
      : queue_(std::move(queue)), answer_(std::move(answer)) {}
  void started(const StartedEvent& event) override;
  void scored(std::vector<OpenAiScored> tokens) override { tokens_ = std::move(tokens); }
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<EventQueue> queue_;
  LlamaAnswer answer_;
  std::vector<OpenAiScored> tokens_;  // of the next piece
};

// The whole answer in one response.
class LlamaText final : public Reply {
 public:
  LlamaText(std::shared_ptr<DelayedResponse> response, LlamaAnswer answer)
      : response_(std::move(response)), answer_(std::move(answer)) {}
  void started(const StartedEvent& event) override;
  void scored(std::vector<OpenAiScored> tokens) override;
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<DelayedResponse> response_;
  LlamaAnswer answer_;
  std::string text_;
  std::vector<OpenAiScored> tokens_;
};

}  // namespace rbee::server
