#include "tools/rbee/terminal_sink.h"

#include <cstdio>

namespace rbee::tools {

void TerminalSink::on_started(const engine::Started& started) noexcept {
  seed_ = started.seed;
}

void TerminalSink::on_token(const engine::TokenText& token) noexcept {
  text_ += token.text;
  std::fwrite(token.text.data(), 1, token.text.size(), stdout);
  std::fflush(stdout);
}

void TerminalSink::on_finished(const engine::Finished& finished) noexcept {
  const std::scoped_lock lock(mutex_);
  finished_ = finished;
  ended_.notify_one();
}

void TerminalSink::on_failed(const engine::Failed& failed) noexcept {
  const std::scoped_lock lock(mutex_);
  failed_ = failed;
  ended_.notify_one();
}

engine::Finished TerminalSink::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return finished_ || failed_; });
  if (failed_) fail(failed_->code, "generation", failed_->message);
  return *finished_;
}

std::string summary(const engine::Finished& finished, uint64_t seed) {
  char rates[160];
  // The first token comes out of the prompt's evaluation.
  const double decoded = finished.tokens_out > 1 ? finished.tokens_out - 1 : 0;
  std::snprintf(
      rates, sizeof rates, "prompt %d tokens, %.1f tokens/s; answer %d tokens, %.1f tokens/s",
      finished.prompt_tokens,
      finished.prompt_ms > 0 ? finished.prompt_tokens * 1000 / finished.prompt_ms : 0.0,
      finished.tokens_out, finished.decode_ms > 0 ? decoded * 1000 / finished.decode_ms : 0.0);
  const bool cut_off = finished.complete == false;
  return cat(rates, " (", engine::wire_name(finished.reason),
             cut_off ? ", the form is not complete" : "", "), seed ", seed);
}

}  // namespace rbee::tools
