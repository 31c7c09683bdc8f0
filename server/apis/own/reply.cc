#include "server/apis/own/reply.h"

#include "server/apis/own/response.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

void JobStream::started(const StartedEvent& event) {
  queue_->push_data(to_json(event));
}

void JobStream::token(std::string_view text, int32_t index) {
  queue_->push_data(token_json(text, index));
}

void JobStream::end(const EndEvent& event, const MetricsEvent& metrics, double) {
  queue_->push_data(to_json(metrics));
  queue_->push_data(to_json(event));
  finish_stream(*queue_);
}

void JobStream::error(const WireError& error, std::string_view message) {
  queue_->push_data(error_event_json(error, message));
  finish_stream(*queue_);
}

void InferStream::token(std::string_view text, int32_t) {
  queue_->push_data(infer_token_json(text));
}

void InferStream::end(const EndEvent&, const MetricsEvent&, double) {
  finish_stream(*queue_);
}

void InferStream::error(const WireError& error, std::string_view message) {
  queue_->push_data(error_json(error.code, message));
  finish_stream(*queue_);
}

void InferText::token(std::string_view text, int32_t) {
  text_ += text;
}

void InferText::end(const EndEvent& event, const MetricsEvent&, double duration_ms) {
  response_->set(json_response(200, infer_json(text_, event, duration_ms)));
}

void InferText::error(const WireError& error, std::string_view message) {
  response_->set(json_response(error.status, error_json(error.code, message)));
}

}  // namespace rbee::server
