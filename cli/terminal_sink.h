#pragma once
// Prints an answer as it comes and lets the caller wait for its end.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "rbee/engine/api/text.h"

namespace rbee::tools {

class TerminalSink final : public engine::EventSink {
 public:
  // The answer goes to standard output; reasoning, if shown, to standard error, dimmed if that is a
  // terminal.
  enum class Thoughts : uint8_t { shown, hidden };
  // What goes to standard output. `tokens` needs TextRequest::logprobs: a line of JSON for each
  // token.
  enum class Answer : uint8_t { text, tokens };
  TerminalSink(Thoughts thoughts, Answer answer)
      : shows_(thoughts == Thoughts::shown), answer_(answer) {}

  void on_started(const engine::Started& started) noexcept override;
  void on_token(const engine::TokenText& token) noexcept override;
  void on_finished(const engine::Finished& finished) noexcept override;
  void on_failed(const engine::Failed& failed) noexcept override;

  // Blocks until the end. Throws the request's Error if it failed.
  engine::Finished wait();
  // Whole answer, and the reasoning before it; valid after wait().
  const std::string& text() const { return text_; }
  const std::string& reasoning() const { return reasoning_; }
  uint64_t seed() const { return seed_; }

 private:
  void think(const std::string& text);
  void end_thoughts();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<engine::Finished> finished_;
  std::optional<engine::Failed> failed_;
  const bool shows_;
  const Answer answer_;
  bool thinking_ = false;  // reasoning is being printed
  std::string text_, reasoning_;
  uint64_t seed_ = 0;
};

// "12 prompt tokens, 34 tokens in 0.41 s: 83.1 tokens/s (EOS), seed 7"
std::string summary(const engine::Finished& finished, uint64_t seed);

}  // namespace rbee::tools
