#pragma once
// OpenAI's answers: several choices, each a job of the engine, are one answer.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/apis/openai/response.h"
#include "server/llm/reply.h"

namespace rbee::server {

// What the choices of one answer share. Their jobs may end on several threads.
struct OpenAiChoices {
  OpenAiAnswer answer;
  int32_t each = 1;              // jobs of a prompt; those of a prompt follow one another
  int32_t wanted = 1;            // of each, the best by the mean of their log probabilities
  std::function<void()> cancel;  // ends all jobs; may be called on any thread

  // Which prompt the choice `index` answers, and whether it is the first to.
  size_t prompt_of(int32_t index) const { return static_cast<size_t>(index / each); }
  bool leads(int32_t index) const { return index % each == 0; }
  bool alone() const { return prompts.size() == 1 && each == 1; }

  std::mutex mutex;                   // guards what follows
  std::vector<OpenAiPrompt> prompts;  // figures come from the first choice of each
  size_t left = 1;                    // jobs that have not ended
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
  void started(const StartedEvent& event) override;
  void progress(const ProgressEvent& progress) override;
  void timed(const ProgressEvent& so_far) override { tokens_.so_far = so_far; }
  void prompt(std::vector<TokenLogprobs> tokens) override;
  void scored(std::vector<TokenLogprobs> tokens) override;
  void token(std::string_view text, int32_t index) override;
  void reasoning(std::string_view text) override;
  void call(int32_t call, const engine::CallBegin& begin) override;
  void arguments(int32_t call, std::string_view json) override;
  void end(const EndEvent& event, const MetricsEvent& metrics, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  void push(std::string json);
  void skip();  // the tokens of a piece that is not sent
  void push_echo();
  void end_custom();

  std::shared_ptr<EventQueue> queue_;
  const std::shared_ptr<OpenAiChoices> choices_;
  const int32_t index_;
  OpenAiPieceTokens tokens_;            // of the next piece
  std::optional<int32_t> custom_call_;  // of a custom tool, which runs
  std::string custom_arguments_;        // its input is told once it is whole
};

// A choice of an answer in one response.
class OpenAiText final : public Reply {
 public:
  OpenAiText(std::shared_ptr<DelayedResponse> response, std::shared_ptr<OpenAiChoices> choices,
             int32_t index)
      : response_(std::move(response)), choices_(std::move(choices)) {
    choice_.index = index;
  }
  void started(const StartedEvent& event) override;
  void prompt(std::vector<TokenLogprobs> tokens) override;
  void scored(std::vector<TokenLogprobs> tokens) override;
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
  size_t told_ = 0;  // tokens of the texts so far
};

}  // namespace rbee::server
