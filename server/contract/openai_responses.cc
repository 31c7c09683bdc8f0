#include "server/contract/openai_responses.h"

#include <nlohmann/json.hpp>

#include "server/contract/json_text.h"
#include "server/contract/timings.h"
#include "server/contract/tool_fields.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// "stop": the model or a stop text ended it; "length": there was no room for more.
Json finish_reason(const EndEvent& end) {
  const bool stopped = end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
  if (stopped && end.called) return "tool_calls";
  return stopped ? "stop" : "length";
}

Json call_json(const OpenAiAnswer& answer, const SentCall& call) {
  Json out = {{"id", call.id}};
  if (answer.is_custom(call.name)) {
    out["type"] = "custom";
    out["custom"] = {{"name", call.name}, {"input", custom_input(call.arguments)}};
  } else {
    out["type"] = "function";
    out["function"] = {{"name", call.name}, {"arguments", call.arguments}};
  }
  return out;
}

Json message_json(const OpenAiAnswer& answer, const OpenAiChoice& choice) {
  Json out = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
  if (!choice.reasoning.empty()) {
    out["reasoning"] = choice.reasoning;
    out["reasoning_content"] = choice.reasoning;
  }
  if (choice.calls.empty()) return out;
  if (choice.text.empty()) out["content"] = nullptr;
  out["tool_calls"] = Json::array();
  for (const SentCall& call : choice.calls) out["tool_calls"].push_back(call_json(answer, call));
  return out;
}

Json usage_json(const OpenAiAnswer& answer, const OpenAiUsage& usage) {
  Json out = {{"prompt_tokens", usage.prompt_tokens},
              {"completion_tokens", usage.completion_tokens},
              {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  out["prompt_tokens_details"] = {{"cached_tokens", usage.cached_tokens}};
  if (answer.chat) {
    out["completion_tokens_details"] = {{"reasoning_tokens", usage.reasoning_tokens}};
  }
  return out;
}

Json envelope(const OpenAiAnswer& answer, const char* chat_object) {
  return {{"id", answer.id},
          {"object", answer.chat ? chat_object : "text_completion"},
          {"created", answer.created},
          {"model", answer.model},
          {"system_fingerprint", answer.fingerprint}};
}

// Of a choice in one response; the answer shows them.
OpenAiLogprobs shown_logprobs(const OpenAiAnswer& answer, const OpenAiChoice& choice) {
  if (!answer.echo) return choice.logprobs;
  OpenAiLogprobs out =
      echoed_logprobs(choice.prompt->scored, choice.prompt->text, *answer.logprobs);
  const std::vector<OpenAiScored>& more = choice.logprobs.tokens;
  out.tokens.insert(out.tokens.end(), more.begin(), more.end());
  return out;
}

Json choice_json(const OpenAiAnswer& answer, const OpenAiChoice& choice) {
  Json out = {{"index", choice.index}};
  if (answer.chat) {
    out["message"] = message_json(answer, choice);
  } else {
    out["text"] = answer.echo ? choice.prompt->text + choice.text : choice.text;
  }
  out["logprobs"] = nullptr;
  if (answer.logprobs) {
    out["logprobs"] = logprobs_json(answer.chat, shown_logprobs(answer, choice));
  }
  out["finish_reason"] = finish_reason(choice.end);
  if (!answer.chat && answer.prompt_logprobs) {
    out["prompt_logprobs"] = prompt_logprobs_json(choice.prompt->scored, *answer.prompt_logprobs);
  }
  return out;
}

// What differs between the pieces of a choice.
struct Piece {
  Json delta;             // of a chat
  std::string_view text;  // else
  Json reason = nullptr;
  Json logprobs = nullptr;
  Json timings = nullptr;  // of the last
};

// Null of a piece without tokens of its own.
Json piece_logprobs(const OpenAiAnswer& answer, const OpenAiLogprobs& logprobs) {
  return logprobs.tokens.empty() ? Json(nullptr) : logprobs_json(answer.chat, logprobs);
}

std::string piece_json(const OpenAiAnswer& answer, int32_t index, Piece piece) {
  Json choice = {{"index", index}};
  if (answer.chat) {
    choice["delta"] = std::move(piece.delta);
  } else {
    choice["text"] = piece.text;
  }
  choice["logprobs"] = std::move(piece.logprobs);
  choice["finish_reason"] = std::move(piece.reason);
  Json out = envelope(answer, "chat.completion.chunk");
  out["choices"] = Json::array({std::move(choice)});
  if (answer.include_usage) out["usage"] = nullptr;
  if (!piece.timings.is_null()) out["timings"] = std::move(piece.timings);
  return dump(out);
}

Json model_json(const OpenAiModel& model, int64_t created) {
  Json out = {{"id", model.id}, {"object", "model"}, {"created", created}, {"owned_by", "rbee"}};
  if (model.context_length > 0) out["max_model_len"] = model.context_length;
  if (model.parent.empty()) return out;
  out["root"] = model.root;
  out["parent"] = model.parent;
  return out;
}

std::string_view error_type(int status) {
  if (status == 429) return "rate_limit_error";
  return status < 500 && status != 499 ? "invalid_request_error" : "server_error";
}

}  // namespace

std::string openai_text_json(const OpenAiAnswer& answer, const std::vector<OpenAiChoice>& choices,
                             const OpenAiUsage& usage) {
  Json out = envelope(answer, "chat.completion");
  out["choices"] = Json::array();
  for (const OpenAiChoice& choice : choices) out["choices"].push_back(choice_json(answer, choice));
  out["usage"] = usage_json(answer, usage);
  if (answer.chat) out["timings"] = timings_json(choices.front().end);
  if (answer.chat && answer.prompt_logprobs) {
    out["prompt_logprobs"] =
        prompt_logprobs_json(choices.front().prompt->scored, *answer.prompt_logprobs);
  }
  return dump(out);
}

std::string openai_echo_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiPrompt& prompt) {
  OpenAiLogprobs logprobs;
  if (answer.logprobs) logprobs = echoed_logprobs(prompt.scored, prompt.text, *answer.logprobs);
  return openai_piece_json(answer, index, prompt.text, logprobs);
}

std::string openai_role_json(const OpenAiAnswer& answer, int32_t index) {
  return piece_json(answer, index, {.delta = {{"role", "assistant"}, {"content", ""}}, .text = ""});
}

std::string openai_piece_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                              const OpenAiLogprobs& logprobs) {
  return piece_json(
      answer, index,
      {.delta = {{"content", text}}, .text = text, .logprobs = piece_logprobs(answer, logprobs)});
}

// Under both of the names that clients read.
std::string openai_reasoning_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                                  const OpenAiLogprobs& logprobs) {
  return piece_json(answer, index,
                    {.delta = {{"reasoning", text}, {"reasoning_content", text}},
                     .text = "",
                     .logprobs = piece_logprobs(answer, logprobs)});
}

std::string openai_call_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiCallPiece& piece, const OpenAiLogprobs& logprobs) {
  const char* const kind = piece.custom ? "custom" : "function";
  Json call = {{"index", piece.call}};
  Json what = Json::object();
  if (!piece.id.empty()) {
    call["id"] = piece.id;
    call["type"] = kind;
    what["name"] = piece.name;
  }
  if (piece.custom) {
    what["input"] = piece.arguments.empty() ? "" : custom_input(std::string(piece.arguments));
  } else {
    what["arguments"] = piece.arguments;
  }
  call[kind] = std::move(what);
  Json delta;
  delta["tool_calls"] = Json::array({std::move(call)});
  return piece_json(
      answer, index,
      {.delta = std::move(delta), .text = "", .logprobs = piece_logprobs(answer, logprobs)});
}

std::string openai_finish_json(const OpenAiAnswer& answer, int32_t index, const EndEvent& end) {
  return piece_json(answer, index,
                    {.delta = Json::object(),
                     .text = "",
                     .reason = finish_reason(end),
                     .timings = answer.chat ? timings_json(end) : Json(nullptr)});
}

std::string openai_usage_json(const OpenAiAnswer& answer, const OpenAiUsage& usage) {
  Json out = envelope(answer, "chat.completion.chunk");
  out["choices"] = Json::array();
  out["usage"] = usage_json(answer, usage);
  return dump(out);
}

std::string openai_models_json(const std::vector<OpenAiModel>& models, int64_t created) {
  Json out = {{"object", "list"}, {"data", Json::array()}};
  for (const OpenAiModel& model : models) out["data"].push_back(model_json(model, created));
  return dump(out);
}

std::string openai_model_json(const OpenAiModel& model, int64_t created) {
  return dump(model_json(model, created));
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
