#include "server/apis/openai/response.h"

#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "server/apis/llama/timings.h"
#include "server/http/error_form.h"
#include "server/wire/json_text.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// "stop": the model or a stop text ended the answer; "length": it reached a limit.
Json finish_reason(const OpenAiAnswer& answer, const EndEvent& end) {
  const bool stopped = end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
  if (stopped && end.called) return answer.older_calls ? "function_call" : "tool_calls";
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
  Json out = {
      {"role", "assistant"}, {"content", answer.echoed + choice.text}, {"refusal", nullptr}};
  if (!choice.reasoning.empty()) {
    out["reasoning"] = choice.reasoning;
    out["reasoning_content"] = choice.reasoning;
  }
  if (choice.calls.empty()) return out;
  if (choice.text.empty()) out["content"] = nullptr;
  if (answer.older_calls) {
    const SentCall& call = choice.calls.front();
    out["function_call"] = {{"name", call.name}, {"arguments", call.arguments}};
    return out;
  }
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

// The log probabilities of a choice in a whole response, if the answer shows them.
OpenAiLogprobs shown_logprobs(const OpenAiAnswer& answer, const OpenAiChoice& choice) {
  OpenAiLogprobs out = choice.logprobs;
  if (!answer.chat && answer.echo) {
    out = echoed_logprobs(choice.prompt->scored, choice.prompt->text, *answer.logprobs);
    const std::vector<TokenLogprobs>& more = choice.logprobs.tokens;
    out.tokens.insert(out.tokens.end(), more.begin(), more.end());
  }
  out.as_ids = answer.tokens_as_ids;
  return out;
}

// Also appends the token that ended the answer.
Json ids_json(const std::vector<TokenLogprobs>& tokens, std::optional<int32_t> end) {
  Json out = Json::array();
  for (const TokenLogprobs& token : tokens) out.push_back(token.chosen.id);
  if (end) out.push_back(*end);
  return out;
}

// Into a completion's choice, or beside a chat's choices.
void add_prompt(Json& out, const OpenAiAnswer& answer, const OpenAiPrompt& prompt) {
  out["prompt_logprobs"] = nullptr;
  if (answer.prompt_logprobs) {
    out["prompt_logprobs"] = prompt_logprobs_json(prompt.scored, *answer.prompt_logprobs);
  }
  out["prompt_token_ids"] = answer.return_token_ids ? Json(prompt.ids) : Json(nullptr);
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
  out["finish_reason"] = finish_reason(answer, choice.end);
  // vLLM's fields. Its clients expect null if there is no value.
  const std::string& stopped = choice.end.stop_sequence;
  out["stop_reason"] = stopped.empty() ? Json(nullptr) : Json(stopped);
  out["token_ids"] = nullptr;
  if (answer.return_token_ids)
    out["token_ids"] = ids_json(choice.logprobs.tokens, choice.end.end_id);
  if (!answer.chat) add_prompt(out, answer, *choice.prompt);
  return out;
}

// The fields that differ between the chunks of a choice.
struct Piece {
  Json delta;             // chats
  std::string_view text;  // completions
  Json reason = nullptr;
  // Of the last:
  Json timings = nullptr;
  std::optional<int32_t> end_id = {};
};

Json usage_json(const OpenAiAnswer& answer, const ProgressEvent& so_far) {
  return usage_json(answer, OpenAiUsage{.prompt_tokens = so_far.prompt_tokens,
                                        .cached_tokens = so_far.cached_tokens,
                                        .completion_tokens = so_far.tokens_out});
}

std::string piece_json(const OpenAiAnswer& answer, int32_t index, Piece piece,
                       const OpenAiPieceTokens& tokens) {
  Json choice = {{"index", index}};
  if (answer.chat) {
    choice["delta"] = std::move(piece.delta);
  } else {
    choice["text"] = piece.text;
  }
  choice["logprobs"] = nullptr;  // also in a chunk without tokens
  if (answer.logprobs && !tokens.tokens.empty()) {
    OpenAiLogprobs shown = tokens;
    shown.as_ids = answer.tokens_as_ids;
    choice["logprobs"] = logprobs_json(answer.chat, shown);
  }
  choice["finish_reason"] = std::move(piece.reason);
  Json out = envelope(answer, "chat.completion.chunk");
  if (answer.return_token_ids) {
    choice["token_ids"] = ids_json(tokens.tokens, piece.end_id);
    if (!tokens.prompt_ids.empty()) {
      (answer.chat ? out : choice)["prompt_token_ids"] = tokens.prompt_ids;
    }
  }
  out["choices"] = Json::array({std::move(choice)});
  if (answer.include_usage) {
    out["usage"] = answer.continuous_usage ? usage_json(answer, tokens.so_far) : Json(nullptr);
  }
  if (!piece.timings.is_null()) {
    out["timings"] = std::move(piece.timings);
  } else if (answer.timings_per_token && tokens.so_far.tokens_out > 0) {
    out["timings"] = timings_json(tokens.so_far);
  }
  return dump(out);
}

Json model_json(const OpenAiModel& model, int64_t created) {
  Json out = {{"id", model.id}, {"object", "model"}, {"created", created}, {"owned_by", "rbee"}};
  if (model.context_length > 0) out["max_model_len"] = model.context_length;
  out["root"] = model.parent.empty() ? model.id : model.root;
  out["parent"] = model.parent.empty() ? Json(nullptr) : Json(model.parent);
  // Without these two Mistral's client cannot read the list.
  out["type"] = "base";
  out["capabilities"] = Json::object();
  out["aliases"] = model.aliases;
  out["tags"] = model.tags;
  return out;
}

}  // namespace

std::string openai_text_json(const OpenAiAnswer& answer, const std::vector<OpenAiChoice>& choices,
                             const OpenAiUsage& usage) {
  Json out = envelope(answer, "chat.completion");
  out["choices"] = Json::array();
  for (const OpenAiChoice& choice : choices) out["choices"].push_back(choice_json(answer, choice));
  out["usage"] = usage_json(answer, usage);
  if (answer.chat) {
    out["timings"] = timings_json(choices.front().end);
    if (choices.size() == 1) out["metrics"] = metrics_json(choices.front().end);
    add_prompt(out, answer, *choices.front().prompt);
  }
  return dump(out);
}

std::string openai_echo_json(const OpenAiAnswer& answer, int32_t index, const OpenAiPrompt& prompt,
                             const OpenAiPieceTokens& tokens) {
  OpenAiPieceTokens echoed = tokens;
  if (answer.logprobs) {
    static_cast<OpenAiLogprobs&>(echoed) =
        echoed_logprobs(prompt.scored, prompt.text, *answer.logprobs);
  }
  return openai_piece_json(answer, index, prompt.text, echoed);
}

std::string openai_role_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiPieceTokens& tokens) {
  return piece_json(answer, index,
                    {.delta = {{"role", "assistant"}, {"content", answer.echoed}}, .text = ""},
                    tokens);
}

std::string openai_progress_json(const OpenAiAnswer& answer, int32_t index,
                                 const ProgressEvent& progress) {
  Json choice = {{"index", index}};
  if (answer.chat) {
    choice["delta"] = Json::object();
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  Json out = envelope(answer, "chat.completion.chunk");
  out["choices"] = Json::array({std::move(choice)});
  out["prompt_progress"] = prompt_progress_json(progress);
  if (answer.timings_per_token) out["timings"] = timings_json(progress);
  return dump(out);
}

std::string openai_piece_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                              const OpenAiPieceTokens& tokens) {
  return piece_json(answer, index, {.delta = {{"content", text}}, .text = text}, tokens);
}

// Under both names that clients read.
std::string openai_reasoning_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                                  const OpenAiPieceTokens& tokens) {
  return piece_json(answer, index,
                    {.delta = {{"reasoning", text}, {"reasoning_content", text}}, .text = ""},
                    tokens);
}

std::string openai_call_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiCallPiece& piece, const OpenAiPieceTokens& tokens) {
  Json delta;
  if (answer.older_calls) {
    Json& call = delta["function_call"];
    if (!piece.id.empty()) call["name"] = piece.name;
    call["arguments"] = piece.arguments;
    return piece_json(answer, index, {.delta = std::move(delta), .text = ""}, tokens);
  }
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
  delta["tool_calls"] = Json::array({std::move(call)});
  return piece_json(answer, index, {.delta = std::move(delta), .text = ""}, tokens);
}

std::string openai_finish_json(const OpenAiAnswer& answer, int32_t index, const EndEvent& end) {
  OpenAiPieceTokens none;
  none.so_far = {.prompt_tokens = end.prompt_tokens,
                 .cached_tokens = end.cached_tokens,
                 .tokens_out = end.tokens_out};
  return piece_json(answer, index,
                    {.delta = Json::object(),
                     .text = "",
                     .reason = finish_reason(answer, end),
                     .timings = answer.chat ? timings_json(end) : Json(nullptr),
                     .end_id = end.end_id},
                    none);
}

std::string openai_usage_json(const OpenAiAnswer& answer, const OpenAiUsage& usage,
                              const EndEvent* end) {
  Json out = envelope(answer, "chat.completion.chunk");
  out["choices"] = Json::array();
  out["usage"] = usage_json(answer, usage);
  if (answer.chat && end != nullptr) out["metrics"] = metrics_json(*end);
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

namespace {

Json error_fields(int status, std::string_view code, std::string_view message,
                  std::string_view param) {
  Json error = {{"message", message}, {"type", openai_error_type(status)}};
  error["param"] = param.empty() ? Json(nullptr) : Json(param);
  error["code"] = code;
  return error;
}

}  // namespace

std::string openai_error_json(int status, std::string_view code, std::string_view message,
                              std::string_view param) {
  Json out;
  out["error"] = error_fields(status, code, message, param);
  return dump(out);
}

// Clients of OpenAI and llama-server search for these words.
std::string openai_too_long_json(int status, int64_t tokens, int64_t context) {
  Json out;
  out["error"] = error_fields(
      status, "context_length_exceeded",
      cat("This model's maximum context length is ", context, " tokens, but the prompt has ",
          tokens, ", which exceeds the available context size"),
      "");
  out["error"]["n_prompt_tokens"] = tokens;
  out["error"]["n_ctx"] = context;
  return dump(out);
}

}  // namespace rbee::server
