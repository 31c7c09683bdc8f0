#include "server/apis/llama/reply.h"

#include <iterator>
#include <utility>

#include "server/apis/openai/response.h"

namespace rbee::server {

bool LlamaAnswers::fails_first() {
  const std::lock_guard lock(mutex);
  return !std::exchange(failed, true);
}

bool LlamaAnswers::ends_last() {
  const std::lock_guard lock(mutex);
  return --left == 0 && !failed;
}

void LlamaStream::started(const StartedEvent& event) {
  answer_.seed = event.seed;
  answer_.prompt_tokens = event.prompt_tokens;
}

void LlamaStream::progress(const ProgressEvent& progress) {
  queue_->push_data(llama_progress_json(answer_, progress));
}

void LlamaStream::token(std::string_view text, int32_t) {
  answer_.new_line = answer_.new_line || text.find('\n') != text.npos;
  queue_->push_data(llama_piece_json(answer_, text, tokens_, so_far_));
  tokens_.clear();
}

void LlamaStream::end(const EndEvent& event, const MetricsEvent&, double) {
  queue_->push_data(llama_end_json(answer_, "", tokens_, event));
  if (answers_->ends_last()) queue_->close();
}

void LlamaStream::error(const WireError& error, std::string_view message) {
  if (!answers_->fails_first()) return;
  queue_->push_data(openai_error_json(error.status, error.code, message));
  queue_->close();
  answers_->cancel();
}

void LlamaText::started(const StartedEvent& event) {
  answer_.seed = event.seed;
  answer_.prompt_tokens = event.prompt_tokens;
}

void LlamaText::scored(std::vector<TokenLogprobs> tokens) {
  std::move(tokens.begin(), tokens.end(), std::back_inserter(tokens_));
}

void LlamaText::token(std::string_view text, int32_t) {
  text_ += text;
}

void LlamaText::end(const EndEvent& event, const MetricsEvent&, double) {
  std::string json = llama_end_json(answer_, text_, tokens_, event);
  {
    const std::lock_guard lock(answers_->mutex);
    answers_->whole[static_cast<size_t>(answer_.index)] = std::move(json);
  }
  if (answers_->ends_last())
    response_->set(json_response(200, llama_answers_json(answers_->whole)));
}

void LlamaText::error(const WireError& error, std::string_view message) {
  if (!answers_->fails_first()) return;
  response_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
  answers_->cancel();
}

}  // namespace rbee::server
