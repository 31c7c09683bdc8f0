#include "server/llm/llama_reply.h"

#include <iterator>

namespace rbee::server {

void LlamaStream::started(const StartedEvent& event) {
  answer_.seed = event.seed;
  answer_.prompt_tokens = event.prompt_tokens;
}

void LlamaStream::token(std::string_view text, int32_t index) {
  answer_.new_line = answer_.new_line || text.find('\n') != text.npos;
  queue_->push_data(llama_piece_json(answer_, text, tokens_, index + 1));
  tokens_.clear();
}

void LlamaStream::end(const EndEvent& event, const MetricsEvent&, double) {
  queue_->push_data(llama_end_json(answer_, "", tokens_, event));
  queue_->close();
}

void LlamaStream::error(const WireError& error, std::string_view message) {
  queue_->push_data(openai_error_json(error.status, error.code, message));
  queue_->close();
}

void LlamaText::started(const StartedEvent& event) {
  answer_.seed = event.seed;
  answer_.prompt_tokens = event.prompt_tokens;
}

void LlamaText::scored(std::vector<OpenAiScored> tokens) {
  std::move(tokens.begin(), tokens.end(), std::back_inserter(tokens_));
}

void LlamaText::token(std::string_view text, int32_t) {
  text_ += text;
}

void LlamaText::end(const EndEvent& event, const MetricsEvent&, double) {
  response_->set(json_response(200, llama_end_json(answer_, text_, tokens_, event)));
}

void LlamaText::error(const WireError& error, std::string_view message) {
  response_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
}

}  // namespace rbee::server
