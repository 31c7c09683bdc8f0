#include "server/apis/cohere/request.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/wire/chat_fields.h"
#include "server/wire/generate_fields.h"
#include "server/wire/json_object.h"
#include "server/wire/json_text.h"
#include "server/wire/reasoning_fields.h"
#include "server/wire/sampling_fields.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;
using Kind = AnswerItem::Kind;

// A document from a tool, as text.
json text_of_document(const json& part) {
  const bool document = part.is_object() && part.value("type", json()) == "document" &&
                        part.value("document", json()).is_object();
  if (!document) return part;
  const json data = part.at("document").value("data", json());
  return {{"type", "text"}, {"text", data.is_string() ? data.get<std::string>() : dump(data)}};
}

// Converts a message to OpenAI's form.
void rename_message(json& message) {
  if (!message.is_object()) return;
  const json plan = message.value("tool_plan", json());
  if (plan.is_string() && message.value("content", json()).is_null()) message["reasoning"] = plan;
  const json content = message.value("content", json());
  if (!content.is_array()) return;
  json& parts = message["content"] = json::array();
  for (const json& part : content) {
    const bool thinking = part.is_object() && part.value("type", json()) == "thinking" &&
                          part.value("thinking", json()).is_string();
    if (thinking) {
      message["reasoning"] = part.at("thinking");
    } else {
      parts.push_back(text_of_document(part));
    }
  }
}

// Renames fields that have another name or spelling in OpenAI's API.
void rename_fields(ObjectReader& reader, JsonBody& body) {
  json& messages = body["messages"];
  if (messages.is_array()) std::ranges::for_each(messages, rename_message);
  const json* choice = reader.find("tool_choice");
  if (choice == nullptr) return;
  if (*choice != "REQUIRED" && *choice != "NONE") {
    reader.note("tool_choice", "one_of(REQUIRED, NONE)", "must be REQUIRED or NONE", choice);
    body["tool_choice"] = nullptr;
    return;
  }
  body["tool_choice"] = *choice == "NONE" ? "none" : "required";
}

// "response_format": {"type": "text" or "json_object", "json_schema"}.
void read_format(ObjectReader& reader, const JsonBody& body, ConstraintFields& out) {
  const json* format = reader.find("response_format");
  if (format == nullptr) return;
  const json type = format->is_object() ? format->value("type", json()) : json();
  if (type == "text") return;
  if (type != "json_object") {
    return reader.note("response_format", "one_of(text, json_object)",
                       "must have the type text or json_object", format);
  }
  const char* name = format->contains("json_schema") ? "json_schema" : "schema";
  const json schema = format->value(name, json());
  if (schema.is_null()) {
    out.kind = "json_object";
  } else if (schema.is_object()) {
    out.kind = "json_schema";
    out.text = dump_in_order(body.in_order("response_format").at(name));
  } else {
    reader.note(cat("response_format.", name), "type(object)", "must be a JSON schema", &schema);
  }
}

void read_choice_of_tokens(ObjectReader& reader, GenerateRequest& out) {
  read_sampling(reader, out, engine::SamplingApi::cohere);
  out.max_tokens = reader.integer("max_tokens", {1, INT32_MAX}).value_or(INT32_MAX);
  const bool named = reader.find("stop_sequences") != nullptr;
  read_stop(reader, out, named ? "stop_sequences" : "stop");
}

std::string_view finish_reason(const EndEvent& end) {
  const bool stopped = end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
  if (stopped && end.called) return "TOOL_CALL";
  if (end.stop_reason == "EOS") return "COMPLETE";
  return stopped ? "STOP_SEQUENCE" : "MAX_TOKENS";
}

Json usage_json(const EndEvent& end) {
  const Json tokens = {{"input_tokens", end.prompt_tokens}, {"output_tokens", end.tokens_out}};
  return {{"billed_units", tokens}, {"tokens", tokens}, {"cached_tokens", end.cached_tokens}};
}

Json call_json(const AnswerItem& item, std::string_view arguments) {
  return {{"id", item.call_id},
          {"type", "function"},
          {"function", {{"name", item.name}, {"arguments", arguments}}}};
}

bool is_plan(const CohereAnswer& answer, const AnswerItem& item) {
  return item.kind == Kind::reasoning && answer.plans;
}

Json scored_json(const TokenLogprobs& token) {
  const std::string& bytes = token.chosen.bytes;
  return {{"text", is_utf8(bytes) ? bytes : ""},
          {"token_ids", Json::array({token.chosen.id})},
          {"logprobs", Json::array({token.chosen.logprob})}};
}

CohereEvent event_of(const char* name, std::optional<size_t> index, Json message) {
  Json out = {{"type", name}};
  if (index) out["index"] = *index;
  if (!message.is_null()) out["delta"]["message"] = std::move(message);
  return {.name = name, .json = dump(out)};
}

const char* field_of(const AnswerItem& item) {
  return item.kind == Kind::reasoning ? "thinking" : "text";
}

}  // namespace

GenerateRequest parse_cohere_chat(std::string_view text) {
  JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  rename_fields(reader, body);
  GenerateRequest out;
  out.messages = read_messages(reader, errors);
  out.chat.split = true;
  read_tools(reader, body, ToolSpelling::openai_chat, out.chat);
  if (reader.boolean("strict_tools").value_or(false)) {
    for (SentTool& tool : out.chat.tools) tool.strict = true;
  }
  read_choice_of_tokens(reader, out);
  read_turn(reader, out);
  read_format(reader, body, out.constraint);
  refuse_unless(reader, "documents", json::array());
  out.stream = reader.boolean("stream").value_or(false);
  if (reader.boolean("logprobs").value_or(false)) out.logprobs = 0;
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::string cohere_chat_json(const CohereAnswer& answer, const std::vector<AnswerItem>& items,
                             const EndEvent& end) {
  Json message = {{"role", "assistant"}};
  Json content = Json::array(), calls = Json::array(), logprobs = Json::array();
  std::string plan;
  for (const AnswerItem& item : items) {
    if (item.kind == Kind::call) {
      calls.push_back(call_json(item, item.text));
    } else if (is_plan(answer, item)) {
      plan += item.text;
    } else {
      content.push_back({{"type", field_of(item)}, {field_of(item), item.text}});
      for (const TokenLogprobs& token : item.scored) logprobs.push_back(scored_json(token));
    }
  }
  if (!content.empty()) message["content"] = std::move(content);
  if (!plan.empty()) message["tool_plan"] = plan;
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  Json out = {{"id", answer.id},
              {"finish_reason", finish_reason(end)},
              {"message", std::move(message)},
              {"usage", usage_json(end)}};
  if (answer.logprobs) out["logprobs"] = std::move(logprobs);
  return dump(out);
}

CohereEvent cohere_start(const CohereAnswer& answer) {
  Json out = {{"type", "message-start"}, {"id", answer.id}};
  out["delta"]["message"] = {{"role", "assistant"},
                             {"content", Json::array()},
                             {"tool_plan", ""},
                             {"tool_calls", Json::array()},
                             {"citations", Json::array()}};
  return {.name = "message-start", .json = dump(out)};
}

CohereEvent cohere_item_start(const CohereAnswer& answer, const AnswerItem& item, size_t index) {
  if (is_plan(answer, item)) return {};
  if (item.kind == Kind::call) {
    return event_of("tool-call-start", index, {{"tool_calls", call_json(item, "")}});
  }
  return event_of("content-start", index,
                  {{"content", {{"type", field_of(item)}, {field_of(item), ""}}}});
}

CohereEvent cohere_item_delta(const CohereAnswer& answer, const AnswerItem& item,
                              const ItemPiece& piece, size_t index) {
  if (is_plan(answer, item)) {
    return event_of("tool-plan-delta", std::nullopt, {{"tool_plan", piece.text}});
  }
  if (item.kind == Kind::call) {
    return event_of("tool-call-delta", index,
                    {{"tool_calls", {{"function", {{"arguments", piece.text}}}}}});
  }
  Json out = {{"type", "content-delta"}, {"index", index}};
  out["delta"]["message"]["content"][field_of(item)] = piece.text;
  if (answer.logprobs && !piece.scored.empty()) {
    Json& shown = out["logprobs"] = {{"text", piece.text}};
    for (const TokenLogprobs& token : piece.scored) {
      shown["token_ids"].push_back(token.chosen.id);
      shown["logprobs"].push_back(token.chosen.logprob);
    }
  }
  return {.name = "content-delta", .json = dump(out)};
}

CohereEvent cohere_item_end(const CohereAnswer& answer, const AnswerItem& item, size_t index) {
  if (is_plan(answer, item)) return {};
  return event_of(item.kind == Kind::call ? "tool-call-end" : "content-end", index, {});
}

CohereEvent cohere_end(const EndEvent& end) {
  Json out = {{"type", "message-end"}};
  out["delta"] = {{"finish_reason", finish_reason(end)}, {"usage", usage_json(end)}};
  return {.name = "message-end", .json = dump(out)};
}

std::string cohere_error_json(std::string_view message) {
  return dump({{"message", message}});
}

}  // namespace rbee::server
