#include "server/contract/openai_responses.h"

#include <nlohmann/json.hpp>

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "stop": the model or a stop text ended it; "length": there was no room for more.
Json finish_reason(const EndEvent& end) {
  const bool stopped = end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
  return stopped ? "stop" : "length";
}

Json usage(const EndEvent& end) {
  return {{"prompt_tokens", end.prompt_tokens},
          {"completion_tokens", end.tokens_out},
          {"total_tokens", int64_t{end.prompt_tokens} + end.tokens_out}};
}

Json envelope(const OpenAiAnswer& answer, const char* chat_object) {
  return {{"id", answer.id},
          {"object", answer.chat ? chat_object : "text_completion"},
          {"created", answer.created},
          {"model", answer.model}};
}

// A piece of a stream with one choice. delta: of a chat; text: else.
Json piece(const OpenAiAnswer& answer, const Json& delta, std::string_view text,
           const Json& reason) {
  Json choice = {{"index", 0}};
  answer.chat ? choice["delta"] = delta : choice["text"] = text;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = reason;
  Json out = envelope(answer, "chat.completion.chunk");
  out["choices"] = Json::array({std::move(choice)});
  return out;
}

std::string_view error_type(int status) {
  if (status == 429) return "rate_limit_error";
  return status < 500 && status != 499 ? "invalid_request_error" : "server_error";
}

}  // namespace

std::string openai_text_json(const OpenAiAnswer& answer, std::string_view text,
                             const EndEvent& end) {
  Json choice = {{"index", 0}};
  if (answer.chat) {
    choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_reason(end);
  Json out = envelope(answer, "chat.completion");
  out["choices"] = Json::array({std::move(choice)});
  out["usage"] = usage(end);
  return dump(out);
}

std::string openai_role_json(const OpenAiAnswer& answer) {
  return dump(piece(answer, {{"role", "assistant"}, {"content", ""}}, "", nullptr));
}

std::string openai_piece_json(const OpenAiAnswer& answer, std::string_view text) {
  return dump(piece(answer, {{"content", text}}, text, nullptr));
}

std::string openai_finish_json(const OpenAiAnswer& answer, const EndEvent& end) {
  return dump(piece(answer, Json::object(), "", finish_reason(end)));
}

std::string openai_usage_json(const OpenAiAnswer& answer, const EndEvent& end) {
  Json out = envelope(answer, "chat.completion.chunk");
  out["choices"] = Json::array();
  out["usage"] = usage(end);
  return dump(out);
}

std::string openai_models_json(std::string_view model, int64_t created) {
  Json entry = {{"id", model}, {"object", "model"}, {"created", created}, {"owned_by", "rbee"}};
  Json out = {{"object", "list"}};
  out["data"] = Json::array({std::move(entry)});
  return dump(out);
}

std::string openai_error_json(int status, std::string_view code, std::string_view message,
                              std::string_view param) {
  Json error = {{"message", message}, {"type", error_type(status)}};
  error["param"] = param.empty() ? Json(nullptr) : Json(param);
  error["code"] = code;
  Json out;
  out["error"] = std::move(error);
  return dump(out);
}

}  // namespace rbee::server
