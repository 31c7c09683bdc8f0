#include "server/apis/anthropic/response.h"

#include <nlohmann/json.hpp>

#include "server/http/error_form.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

std::string_view stop_reason(const EndEvent& end) {
  if (end.stop_reason == "EOS") return end.called ? "tool_use" : "end_turn";
  if (end.stop_reason == "STOP_SEQUENCE") return "stop_sequence";
  return end.stop_reason == "CONTEXT_FULL" ? "model_context_window_exceeded" : "max_tokens";
}

Json stop_sequence(const EndEvent& end) {
  return end.stop_sequence.empty() ? Json(nullptr) : Json(end.stop_sequence);
}

Json message(const AnthropicAnswer& answer) {
  return {{"id", answer.id},         {"type", "message"},        {"role", "assistant"},
          {"model", answer.model},   {"content", Json::array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}};
}

Json block(const AnswerItem& item, std::string_view text) {
  switch (item.kind) {
    case AnswerItem::Kind::reasoning:
      return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
    case AnswerItem::Kind::call: {
      Json input = text.empty() ? Json::object() : Json::parse(text, nullptr, false);
      if (!input.is_object()) input = Json::object();  // it was cut off
      return {{"type", "tool_use"},
              {"id", item.call_id},
              {"name", item.name},
              {"input", std::move(input)}};
    }
    case AnswerItem::Kind::text:
      break;
  }
  return {{"type", "text"}, {"text", text}};
}

Json delta(const AnswerItem& item, std::string_view text) {
  switch (item.kind) {
    case AnswerItem::Kind::reasoning:
      return {{"type", "thinking_delta"}, {"thinking", text}};
    case AnswerItem::Kind::call:
      return {{"type", "input_json_delta"}, {"partial_json", text}};
    case AnswerItem::Kind::text:
      break;
  }
  return {{"type", "text_delta"}, {"text", text}};
}

// A prompt's tokens are those read from the cache and those that were not. Clients neither request
// nor pay for cache entries: every prompt leaves some.
Json usage(int32_t prompt_tokens, int32_t cached_tokens, int32_t output_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens},
          {"output_tokens", output_tokens}};
}

Json usage(const EndEvent& end) {
  Json out = usage(end.prompt_tokens, end.cached_tokens, end.tokens_out);
  out["output_tokens_details"] = {{"thinking_tokens", end.reasoning_tokens}};
  return out;
}

Json model(std::string_view id, std::string_view created) {
  return {{"type", "model"}, {"id", id}, {"display_name", id}, {"created_at", created}};
}

}  // namespace

std::string anthropic_message_json(const AnthropicAnswer& answer,
                                   const std::vector<AnswerItem>& items, const EndEvent& end) {
  Json out = message(answer);
  for (const AnswerItem& item : items) out["content"].push_back(block(item, item.text));
  out["stop_reason"] = stop_reason(end);
  out["stop_sequence"] = stop_sequence(end);
  out["usage"] = usage(end);
  return dump(out);
}

std::string anthropic_start_json(const AnthropicAnswer& answer, const StartedEvent& start) {
  Json out = {{"type", "message_start"}};
  out["message"] = message(answer);
  out["message"]["usage"] = usage(start.prompt_tokens, start.cached_tokens, 0);
  return dump(out);
}

std::string anthropic_block_start_json(const AnswerItem& item, size_t index) {
  Json out = {{"type", "content_block_start"}, {"index", index}};
  out["content_block"] = block(item, "");
  return dump(out);
}

std::string anthropic_delta_json(const AnswerItem& item, size_t index, std::string_view text) {
  Json out = {{"type", "content_block_delta"}, {"index", index}};
  out["delta"] = delta(item, text);
  return dump(out);
}

std::string anthropic_block_stop_json(size_t index) {
  return dump({{"type", "content_block_stop"}, {"index", index}});
}

std::string anthropic_message_delta_json(const EndEvent& end) {
  Json out = {{"type", "message_delta"}};
  out["delta"] = {{"stop_reason", stop_reason(end)}, {"stop_sequence", stop_sequence(end)}};
  out["usage"] = usage(end);
  return dump(out);
}

std::string anthropic_message_stop_json() {
  return R"({"type":"message_stop"})";
}

std::string anthropic_error_json(int status, std::string_view message) {
  Json out = {{"type", "error"}};
  out["error"] = {{"type", anthropic_error_type(status)}, {"message", message}};
  return dump(out);
}

std::string anthropic_count_json(size_t input_tokens) {
  Json out;
  out["input_tokens"] = input_tokens;
  return dump(out);
}

std::string anthropic_models_json(const std::vector<std::string>& ids, std::string_view created) {
  Json out = {{"data", Json::array()}, {"has_more", false}};
  for (const std::string& id : ids) out["data"].push_back(model(id, created));
  out["first_id"] = ids.front();
  out["last_id"] = ids.back();
  return dump(out);
}

std::string anthropic_model_json(std::string_view id, std::string_view created) {
  return dump(model(id, created));
}

}  // namespace rbee::server
