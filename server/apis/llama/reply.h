#pragma once
// Answers in llama-server's own form.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/apis/llama/response.h"
#include "server/llm/reply.h"

namespace rbee::server {

// Shared by the answers to one request's prompts. Their jobs may end on several threads.
struct LlamaAnswers {
  std::function<void()> cancel;  // ends all jobs; thread-safe

  // True for the first answer that fails; only that one is reported.
  bool fails_first();
  // Counts an ended answer; true if it was the last, and none failed.
  bool ends_last();

  std::mutex mutex;  // guards the members below
  size_t left = 1;   // jobs that have not ended
  bool failed = false;
  std::vector<std::string> whole;  // of answers in one response: their JSON, by prompt
};

// Pieces; each prompt's last one says "stop": true. No [DONE] follows.
class LlamaStream final : public Reply {
 public:
  LlamaStream(std::shared_ptr<EventQueue> queue, LlamaAnswer answer,
              std::shared_ptr<LlamaAnswers> answers)
      : queue_(std::move(queue)), answer_(std::move(answer)), answers_(std::move(answers)) {}
  void started(const StartedEvent& event) override;
  void progress(const ProgressEvent& progress) override;
  void timed(const ProgressEvent& so_far) override { so_far_ = so_far; }
  void scored(std::vector<TokenLogprobs> tokens) override { tokens_ = std::move(tokens); }
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<EventQueue> queue_;
  LlamaAnswer answer_;
  const std::shared_ptr<LlamaAnswers> answers_;
  std::vector<TokenLogprobs> tokens_;  // of the next piece
  ProgressEvent so_far_;               // at the next piece
};

// The whole answer in one response; answers to several prompts are an array.
class LlamaText final : public Reply {
 public:
  LlamaText(std::shared_ptr<DelayedResponse> response, LlamaAnswer answer,
            std::shared_ptr<LlamaAnswers> answers)
      : response_(std::move(response)), answer_(std::move(answer)), answers_(std::move(answers)) {}
  void started(const StartedEvent& event) override;
  void scored(std::vector<TokenLogprobs> tokens) override;
  void token(std::string_view text, int32_t index) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<DelayedResponse> response_;
  LlamaAnswer answer_;
  const std::shared_ptr<LlamaAnswers> answers_;
  std::string text_;
  std::vector<TokenLogprobs> tokens_;
};

}  // namespace rbee::server
