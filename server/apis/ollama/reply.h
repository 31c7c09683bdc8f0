#pragma once
// A job's events as Ollama's answers: a line for each piece, or one answer.

#include <memory>
#include <string>

#include "server/apis/ollama/response.h"
#include "server/llm/reply.h"

namespace rbee::server {

// Collects the pieces. A call is sent whole: after it ends, when the next part or the end comes.
class OllamaReply : public Reply {
 public:
  explicit OllamaReply(OllamaAnswer answer) : answer_(std::move(answer)) {}

  void started(const StartedEvent&) override {}
  void scored(std::vector<TokenLogprobs> tokens) final;
  void token(std::string_view text, int32_t) final;
  void reasoning(std::string_view text) final;
  void call(int32_t, const engine::CallBegin& begin) final;
  void arguments(int32_t, std::string_view json) final { open_.text += json; }

 protected:
  const OllamaAnswer& answer() const { return answer_; }
  // What has come since the last take().
  OllamaPiece take();
  // Adds the call that is still open.
  void close_call();
  virtual void grew() {}

 private:
  const OllamaAnswer answer_;
  OllamaPiece piece_;
  AnswerItem open_;  // the last call; without a name: none
};

// A line for each piece; the queue is closed after the last one or an error.
class OllamaStream final : public OllamaReply {
 public:
  OllamaStream(std::shared_ptr<EventQueue> queue, OllamaAnswer answer);

  void end(const EndEvent& event, const MetricsEvent&, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  void grew() override;

  std::shared_ptr<EventQueue> queue_;
};

class OllamaText final : public OllamaReply {
 public:
  OllamaText(std::shared_ptr<DelayedResponse> response, OllamaAnswer answer)
      : OllamaReply(std::move(answer)), response_(std::move(response)) {}

  void end(const EndEvent& event, const MetricsEvent&, double duration_ms) override;
  void error(const WireError& error, std::string_view message) override;

 private:
  std::shared_ptr<DelayedResponse> response_;
};

}  // namespace rbee::server
