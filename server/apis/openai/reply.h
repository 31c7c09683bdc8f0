#pragma once
// OpenAI's answers: several choices, each a job of the engine, form one answer.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/apis/openai/response.h"
#include "server/llm/reply.h"

namespace rbee::server {

// Shared by the choices of one answer. Their jobs may end on several threads.
struct OpenAiChoices {
  OpenAiAnswer answer;
  int32_t each = 1;    // jobs of a prompt; they have successive indices
  int32_t wanted = 1;  // return so many of each prompt's answers, the best by mean log probability
  std::function<void()> cancel;  // ends all jobs; thread-safe

  // The prompt of choice `index`, and whether it is that prompt's first choice.
  size_t prompt_of(int32_t index) const { return static_cast<size_t>(index / each); }
  bool leads(int32_t index) const { return index % each == 0; }
  bool alone() const { return prompts.size() == 1 && each == 1; }

  std::mutex mutex;                   // guards the members below
  std::vector<OpenAiPrompt> prompts;  // each gets its figures from its first choice
  size_t left = 1;                    // jobs that have not ended
  bool failed = false;
  OpenAiUsage usage;
  std::vector<OpenAiChoice> done;  // for an answer in one response
};

// One choice of a streamed answer; [DONE] ends the stream.
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
  void skip();  // drops the tokens of a piece that is not sent
  void push_echo();
  void end_custom();

  std::shared_ptr<EventQueue> queue_;
  const std::shared_ptr<OpenAiChoices> choices_;
  const int32_t index_;
  OpenAiPieceTokens tokens_;            // of the next piece
  std::optional<int32_t> custom_call_;  // the current call of a custom tool
  std::string custom_arguments_;        // its input is sent once it is complete
};

// One choice of an answer in one response.
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
  size_t counted_tokens_ = 0;  // tokens of the texts so far
};

}  // namespace rbee::server
