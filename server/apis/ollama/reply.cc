#include "server/apis/ollama/reply.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rbee::server {

void OllamaReply::scored(std::vector<TokenLogprobs> tokens) {
  std::ranges::move(tokens, std::back_inserter(piece_.tokens));
}

void OllamaReply::token(std::string_view text, int32_t) {
  close_call();
  piece_.text += text;
  if (!text.empty()) grew();
}

void OllamaReply::reasoning(std::string_view text) {
  close_call();
  piece_.thinking += text;
  if (!text.empty()) grew();
}

void OllamaReply::call(int32_t, const engine::CallBegin& begin) {
  close_call();
  open_ = {.kind = AnswerItem::Kind::call, .text = {}, .call_id = begin.id, .name = begin.name};
}

void OllamaReply::close_call() {
  if (open_.name.empty()) return;
  piece_.calls.push_back(std::exchange(open_, {}));
  grew();
}

OllamaPiece OllamaReply::take() {
  OllamaPiece out = std::exchange(piece_, {});
  piece_.first_call = out.first_call + out.calls.size();
  return out;
}

OllamaStream::OllamaStream(std::shared_ptr<EventQueue> queue, OllamaAnswer answer)
    : OllamaReply(std::move(answer)), queue_(std::move(queue)) {
  queue_->set_form(StreamForm::lines);
}

void OllamaStream::grew() {
  queue_->push_data(ollama_piece_json(answer(), take()));
}

void OllamaStream::end(const EndEvent& event, const MetricsEvent&, double duration_ms) {
  close_call();
  queue_->push_data(ollama_end_json(answer(), take(), event, duration_ms));
  queue_->close();
}

void OllamaStream::error(const WireError& error, std::string_view message) {
  queue_->push_data(ollama_error_line(error.status, message));
  queue_->close();
}

void OllamaText::end(const EndEvent& event, const MetricsEvent&, double duration_ms) {
  close_call();
  response_->set(json_response(200, ollama_end_json(answer(), take(), event, duration_ms)));
}

void OllamaText::error(const WireError& error, std::string_view message) {
  response_->set(json_response(error.status, ollama_error_json(message)));
}

}  // namespace rbee::server
