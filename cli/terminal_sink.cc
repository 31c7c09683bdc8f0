#include "cli/terminal_sink.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/printable.h"

namespace rbee::tools {
namespace {

// Programs that read the answer get it unchanged; a terminal gets printable text.
void write(const std::string& text, FILE* to) {
  const std::string shown = isatty(fileno(to)) == 1 ? printable_text(text) : text;
  std::fwrite(shown.data(), 1, shown.size(), to);
}

// A token's text may end within a character.
void write_tokens(const std::vector<engine::ScoredChoice>& tokens) {
  using nlohmann::json;
  for (const engine::ScoredChoice& token : tokens) {
    const json line = {
        {"id", token.chosen.id}, {"logprob", token.chosen.logprob}, {"text", token.chosen.text}};
    std::printf("%s\n", line.dump(-1, ' ', true, json::error_handler_t::replace).c_str());
  }
  std::fflush(stdout);
}

}  // namespace

void TerminalSink::on_started(const engine::Started& started) noexcept {
  seed_ = started.seed;
}

void TerminalSink::on_token(const engine::TokenText& token) noexcept {
  if (answer_ == Answer::tokens) return write_tokens(token.tokens);
  if (token.kind == engine::TextKind::reasoning) return think(token.text);
  end_thoughts();
  text_ += token.text;
  write(token.text, stdout);
  std::fflush(stdout);
}

void TerminalSink::think(const std::string& text) {
  reasoning_ += text;
  if (!shows_) return;
  if (!thinking_ && isatty(STDERR_FILENO) == 1) std::fputs("\033[2m", stderr);
  thinking_ = true;
  write(text, stderr);
}

void TerminalSink::end_thoughts() {
  if (!std::exchange(thinking_, false)) return;
  std::fputs(isatty(STDERR_FILENO) == 1 ? "\033[0m\n\n" : "\n\n", stderr);
}

void TerminalSink::on_finished(const engine::Finished& finished) noexcept {
  end_thoughts();
  const std::scoped_lock lock(mutex_);
  finished_ = finished;
  ended_.notify_one();
}

void TerminalSink::on_failed(const engine::Failed& failed) noexcept {
  end_thoughts();
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
  char rates[240];
  // The prompt's evaluation gives the first token.
  const double decoded = finished.tokens_out > 1 ? finished.tokens_out - 1 : 0;
  const std::string thoughts = finished.reasoning_tokens > 0
                                   ? cat(", ", finished.reasoning_tokens, " of them reasoning")
                                   : "";
  std::snprintf(rates, sizeof rates,
                "prompt %d tokens, %.1f tokens/s; answer %d tokens%s, %.1f tokens/s",
                finished.prompt_tokens,
                finished.prompt_ms > 0 ? finished.prompt_tokens * 1000 / finished.prompt_ms : 0.0,
                finished.tokens_out, thoughts.c_str(),
                finished.decode_ms > 0 ? decoded * 1000 / finished.decode_ms : 0.0);
  const bool cut_off = finished.complete == false;
  return cat(rates, " (", engine::wire_name(finished.reason),
             cut_off ? ", the form is not complete" : "", "), seed ", seed);
}

}  // namespace rbee::tools
