#include "server/apis/responses/response.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/apis/llama/timings.h"
#include "server/apis/openai/logprobs.h"
#include "server/wire/constraint_fields.h"
#include "server/wire/generate_fields.h"
#include "server/wire/json_text.h"
#include "server/wire/lora_fields.h"
#include "server/wire/message_parts.h"
#include "server/wire/reasoning_fields.h"
#include "server/wire/sampling_fields.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

// ---- requests

void refuse_what_is_not_done(ObjectReader& reader) {
  struct Neutral {
    const char* field;
    std::vector<json> values;
  };
  static const std::vector<Neutral> fields = {
      {"previous_response_id", {}},
      {"conversation", {}},
      {"background", {false}},
      {"prompt", {}},
      // A prompt that is too long is an error; it is never cut.
      {"truncation", {"disabled", "auto"}},
      {"access_programs", {json::array()}},
      {"background_options", {}},
      {"context_management", {json::array()}},
      {"image", {}},
      {"moderation", {}},
  };
  refuse_vllm_fields(reader);
  refuse_unless(reader, "include_reasoning", true);
  for (const Neutral& neutral : fields) {
    const json* value = reader.find(neutral.field);
    if (value == nullptr || std::ranges::count(neutral.values, *value) > 0) continue;
    reader.note(neutral.field, "unsupported", "asks for what this worker does not do", value);
  }
}

constexpr int32_t kMaxLogprobs = 20;

// The extra content that `include` requests; reasoning.encrypted_content stays empty.
void read_include(ObjectReader& reader, GenerateRequest& request) {
  const json* list = reader.find("include");
  const std::optional<int32_t> top = reader.integer("top_logprobs", {0, kMaxLogprobs});
  if (list != nullptr && !list->is_array()) {
    return reader.note("include", "type(array)", "must be an array of names", list);
  }
  for (const json& name : list == nullptr ? json::array() : *list) {
    if (name == "message.output_text.logprobs") {
      request.logprobs = top.value_or(0);
    } else if (name != "reasoning.encrypted_content") {
      return reader.note("include", "unsupported", "asks for what this worker does not do", list);
    }
  }
  if (top.value_or(0) == 0 || request.logprobs) return;
  reader.note("top_logprobs", "requires(include)", "needs message.output_text.logprobs in include",
              reader.find("top_logprobs"));
}

// The assistant's current turn; all its items become one message.
SentMessage& assistant(std::vector<SentMessage>& messages) {
  if (messages.empty() || messages.back().role != "assistant") {
    messages.push_back({.role = "assistant", .content = {}});
  }
  return messages.back();
}

void read_message(ObjectReader& fields, const std::string& prefix,
                  std::vector<SentMessage>& messages) {
  SentMessage out;
  out.role = fields.text("role").value_or("");
  if (out.role.empty()) fields.note("role", "required", "is missing", nullptr);
  if (out.role == "developer") out.role = "system";
  if (const json* content = fields.find("content")) {
    read_parts(*content, PartSpelling::openai_responses, fields, prefix, out);
  } else {
    fields.note("content", "required", "is missing", nullptr);
  }
  const bool goes_on = out.role == "assistant" && !messages.empty() &&
                       messages.back().role == "assistant" && messages.back().content.empty() &&
                       messages.back().tool_calls.empty();
  if (goes_on) {
    messages.back().content = std::move(out.content);
  } else {
    messages.push_back(std::move(out));
  }
}

void read_reasoning(ObjectReader& fields, std::vector<SentMessage>& messages) {
  messages.push_back({.role = "assistant", .content = {}});
  for (const char* name : {"content", "summary"}) {
    const json* parts = fields.find(name);
    if (parts == nullptr || !messages.back().reasoning.empty()) continue;
    for (const json& part : parts->is_array() ? *parts : json::array()) {
      const json text = part.is_object() ? part.value("text", json()) : json();
      if (text.is_string()) messages.back().reasoning += text.get_ref<const std::string&>();
    }
  }
}

void read_item(const json& entry, const std::string& prefix, std::vector<FieldError>& errors,
               std::vector<SentMessage>& messages) {
  ObjectReader fields(entry, prefix, errors);
  const std::string type = fields.text("type").value_or("message");
  const auto required = [&](const char* name) {
    if (fields.find(name) == nullptr) fields.note(name, "required", "is missing", nullptr);
    return fields.text(name).value_or("");
  };
  if (type == "message") {
    read_message(fields, prefix, messages);
  } else if (type == "function_call") {
    assistant(messages).tool_calls.push_back(
        {.id = required("call_id"), .name = required("name"), .arguments = required("arguments")});
  } else if (type == "custom_tool_call") {
    assistant(messages).tool_calls.push_back({.id = required("call_id"),
                                              .name = required("name"),
                                              .arguments = custom_arguments(required("input"))});
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    SentMessage out{.role = "tool", .content = {}};
    out.tool_call_id = required("call_id");
    if (const json* output = fields.find("output")) {
      read_parts(*output, PartSpelling::openai_responses, fields, prefix, out);
    } else {
      fields.note("output", "required", "is missing", nullptr);
    }
    messages.push_back(std::move(out));
  } else if (type == "reasoning") {
    read_reasoning(fields, messages);
  } else {
    fields.note("type",
                "one_of(message, function_call, function_call_output, custom_tool_call, "
                "custom_tool_call_output, reasoning)",
                "asks for what this worker does not do", fields.find("type"));
  }
}

void read_input(ObjectReader& reader, std::vector<FieldError>& errors, GenerateRequest& request) {
  const json* input = reader.find("input");
  if (input != nullptr && input->is_string() && !input->get_ref<const std::string&>().empty()) {
    request.messages.push_back({.role = "user", .content = input->get<std::string>()});
    return;
  }
  if (input == nullptr || !input->is_array() || input->empty()) {
    return reader.note("input", input == nullptr ? "required" : "type(string), non_empty",
                       "must be a text or an array of at least one message", input);
  }
  for (size_t i = 0; i < input->size(); ++i) {
    const json& entry = (*input)[i];
    if (entry.is_object()) {
      read_item(entry, cat("input[", i, "]."), errors, request.messages);
    } else {
      reader.note(cat("input[", i, "]"), "type(object)", "must be an object", &entry);
    }
  }
}

// "reasoning": {"effort"}; its other fields are ignored.
void read_effort(ObjectReader& reader, std::vector<FieldError>& errors, ChatFields& chat) {
  const json* reasoning = reader.find("reasoning");
  if (reasoning == nullptr) return;
  if (!reasoning->is_object()) {
    return reader.note("reasoning", "type(object)", "must be an object", reasoning);
  }
  ObjectReader fields(*reasoning, "reasoning.", errors);
  read_reasoning_effort(fields, "effort", chat);
}

void read_text_form(ObjectReader& reader, const JsonBody& body, std::vector<FieldError>& errors,
                    ResponseRequest& out) {
  const json* text = reader.find("text");
  if (text == nullptr) return;
  if (!text->is_object()) return reader.note("text", "type(object)", "must be an object", text);
  ObjectReader fields(*text, "text.", errors);
  out.generate.constraint = read_text_format(fields, body, errors);
  if (fields.find("format") != nullptr) {
    out.text_format = dump_in_order(body.in_order("text").at("format"));
  }
}

// Returned with the answer.
void read_metadata(ObjectReader& reader, const JsonBody& body, ResponseRequest& out) {
  const json* metadata = reader.find("metadata");
  if (metadata == nullptr) return;
  if (!metadata->is_object()) {
    return reader.note("metadata", "type(object)", "must be an object", metadata);
  }
  out.metadata = dump_in_order(body.in_order("metadata"));
}

// ---- answers

using Kind = AnswerItem::Kind;

bool is_custom(const ResponseAnswer& answer, const AnswerItem& item) {
  return item.kind == Kind::call &&
         std::ranges::any_of(answer.request.generate.chat.tools, [&](const SentTool& tool) {
           return tool.custom && tool.name == item.name;
         });
}

// The id of an answer's item at its index in the output.
std::string item_id(const ResponseAnswer& answer, const AnswerItem& item, size_t index) {
  const char* prefix = is_custom(answer, item)   ? "ctc_"
                       : item.kind == Kind::call ? "fc_"
                       : item.kind == Kind::text ? "msg_"
                                                 : "rs_";
  return index == 0 ? prefix + answer.id : cat(prefix, answer.id, "-", index);
}

bool complete(const EndEvent& end) {
  return end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
}

Json figures(const std::vector<TokenLogprobs>& tokens) {
  return logprobs_json(true, {.tokens = tokens}).at("content");
}

Json part(const AnswerItem& item) {
  if (item.kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", Json::array()},
          {"logprobs", figures(item.scored)}};
}

Json empty_item(const ResponseAnswer& answer, const AnswerItem& item, size_t index,
                std::string_view status) {
  Json out = {{"id", item_id(answer, item, index)}};
  if (item.kind == Kind::call) {
    const bool custom = is_custom(answer, item);
    out["type"] = custom ? "custom_tool_call" : "function_call";
    out["status"] = status;
    out["call_id"] = item.call_id;
    out["name"] = item.name;
    out[custom ? "input" : "arguments"] = "";
    return out;
  }
  out["type"] = item.kind == Kind::text ? "message" : "reasoning";
  out["status"] = status;
  if (item.kind == Kind::text) out["role"] = "assistant";
  if (item.kind == Kind::reasoning) out["summary"] = Json::array();
  out["content"] = Json::array();
  return out;
}

Json whole_item(const ResponseAnswer& answer, const AnswerItem& item, size_t index,
                std::string_view status) {
  Json out = empty_item(answer, item, index, status);
  if (is_custom(answer, item)) {
    out["input"] = custom_input(item.text);
  } else if (item.kind == Kind::call) {
    out["arguments"] = item.text;
  } else {
    out["content"].push_back(part(item));
  }
  return out;
}

Json tools_json(const ChatFields& chat) {
  Json out = Json::array();
  for (const SentTool& tool : chat.tools) {
    const Json function = Json::parse(tool.json).at("function");
    if (tool.custom) {
      Json one = {{"type", "custom"}, {"name", tool.name}, {"format", {{"type", "text"}}}};
      if (!tool.syntax.empty()) {
        one["format"] = {
            {"type", "grammar"}, {"syntax", tool.syntax}, {"definition", tool.definition}};
      }
      if (function.contains("description")) one["description"] = function.at("description");
      out.push_back(std::move(one));
      continue;
    }
    Json one = {{"type", "function"}};
    one.update(function);
    if (!one.contains("parameters")) one["parameters"] = nullptr;
    one["strict"] = tool.strict;
    out.push_back(std::move(one));
  }
  return out;
}

Json tool_choice_json(const ChatFields& chat) {
  if (!chat.tool.empty()) {
    const auto tool = std::ranges::find(chat.tools, chat.tool, &SentTool::name);
    const bool custom = tool != chat.tools.end() && tool->custom;
    return {{"type", custom ? "custom" : "function"}, {"name", chat.tool}};
  }
  return chat.tool_choice.empty() ? Json("auto") : Json(chat.tool_choice);
}

Json object(const ResponseAnswer& answer, std::string_view status) {
  const GenerateRequest& asked = answer.request.generate;
  const std::string& instructions = answer.request.instructions;
  const bool limited = asked.max_tokens && *asked.max_tokens != INT32_MAX;
  Json out = {{"id", "resp_" + answer.id},    {"object", "response"},
              {"created_at", answer.created}, {"status", status},
              {"background", false},          {"error", nullptr},
              {"incomplete_details", nullptr}};
  out["instructions"] = instructions.empty() ? Json(nullptr) : Json(instructions);
  out["max_output_tokens"] = limited ? Json(*asked.max_tokens) : Json(nullptr);
  out["model"] = answer.model;
  out["output"] = Json::array();
  out["parallel_tool_calls"] = asked.chat.parallel_tool_calls;
  out["previous_response_id"] = nullptr;
  out["store"] = false;
  out["temperature"] = decimal(asked.sampling.temperature);
  const std::string& format = answer.request.text_format;
  out["text"]["format"] = format.empty() ? Json({{"type", "text"}}) : Json::parse(format);
  out["tool_choice"] = tool_choice_json(asked.chat);
  out["tools"] = tools_json(asked.chat);
  out["top_logprobs"] = asked.logprobs.value_or(0);
  out["top_p"] = decimal(asked.sampling.top_p);
  out["truncation"] = "disabled";
  out["usage"] = nullptr;
  const std::string& metadata = answer.request.metadata;
  out["metadata"] = metadata.empty() ? Json::object() : Json::parse(metadata);
  return out;
}

Json ended(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
           const EndEvent& end) {
  Json out = object(answer, complete(end) ? "completed" : "incomplete");
  if (!complete(end)) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  for (size_t i = 0; i < items.size(); ++i) {
    const bool whole = complete(end) || i + 1 < items.size();
    out["output"].push_back(whole_item(answer, items[i], i, whole ? "completed" : "incomplete"));
  }
  out["usage"] = {{"input_tokens", end.prompt_tokens},
                  {"input_tokens_details", {{"cached_tokens", end.cached_tokens}}},
                  {"output_tokens", end.tokens_out},
                  {"output_tokens_details", {{"reasoning_tokens", end.reasoning_tokens}}},
                  {"total_tokens", int64_t{end.prompt_tokens} + end.tokens_out}};
  out["timings"] = timings_json(end);
  return out;
}

// The name of a stream's events for a part.
std::string_view piece_name(const AnswerItem& item) {
  if (item.kind == Kind::call) return "response.function_call_arguments";
  return item.kind == Kind::text ? "response.output_text" : "response.reasoning_text";
}

// Numbers the events of a stream.
class Events {
 public:
  Events(const ResponseAnswer& answer, ResponsePlace place, int& number)
      : answer_(answer), place_(place), number_(number) {}

  NamedEvent item(std::string_view type, Json value) const {
    Json out = {{"type", type}, {"sequence_number", number_++}, {"output_index", place_.index}};
    out["item"] = std::move(value);
    return {std::string(type), dump(out)};
  }
  // scored: the tokens of the event's text.
  NamedEvent content(std::string_view type, const char* field, Json value,
                     const std::vector<TokenLogprobs>& scored = {}) const {
    Json out = {{"type", type},
                {"sequence_number", number_++},
                {"item_id", item_id(answer_, place_.item, place_.index)},
                {"output_index", place_.index}};
    if (place_.item.kind != Kind::call) out["content_index"] = 0;
    out[field] = std::move(value);
    if (type.starts_with("response.output_text")) out["logprobs"] = figures(scored);
    if (type == "response.function_call_arguments.done") out["name"] = place_.item.name;
    if (place_.so_far != nullptr) out["timings"] = timings_json(*place_.so_far);
    return {std::string(type), dump(out)};
  }

 private:
  const ResponseAnswer& answer_;
  const ResponsePlace place_;
  int& number_;
};

}  // namespace

ResponseRequest parse_response_request(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ResponseRequest out;
  GenerateRequest& request = out.generate;
  out.instructions = reader.text("instructions").value_or("");
  if (!out.instructions.empty()) {
    request.messages.push_back({.role = "system", .content = out.instructions});
  }
  read_input(reader, errors, request);
  refuse_what_is_not_done(reader);
  read_include(reader, request);
  request.chat.split = true;
  read_tools(reader, body, ToolSpelling::openai_responses, request.chat);
  read_reasoning(reader, body, request.chat);
  read_effort(reader, errors, request.chat);
  read_text_form(reader, body, errors, out);
  read_metadata(reader, body, out);
  read_adapters(reader, errors, request);
  request.max_tokens = reader.integer("max_output_tokens", {1, INT32_MAX}).value_or(INT32_MAX);
  read_sampling(reader, request);
  read_turn(reader, request);
  request.stream = reader.boolean("stream").value_or(false);
  out.timings_per_token = reader.boolean("timings_per_token").value_or(false) && *request.stream;
  request.token_ids = out.timings_per_token;  // to count them
  request.progress = reader.boolean("return_progress").value_or(false) && *request.stream;
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::string response_json(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                          const EndEvent& end) {
  return dump(ended(answer, items, end));
}

NamedEvent response_state(const ResponseAnswer& answer, std::string_view type, int& number) {
  Json out = {{"type", type}, {"sequence_number", number++}};
  out["response"] = object(answer, "in_progress");
  return {std::string(type), dump(out)};
}

NamedEvent response_progress(const ResponseAnswer& answer, const ProgressEvent& progress,
                             int& number) {
  constexpr const char* kType = "response.in_progress";
  Json out = {{"type", kType}, {"sequence_number", number++}};
  out["response"] = object(answer, "in_progress");
  out["prompt_progress"] = prompt_progress_json(progress);
  if (answer.request.timings_per_token) out["timings"] = timings_json(progress);
  return {kType, dump(out)};
}

std::vector<NamedEvent> response_item_opened(const ResponseAnswer& answer, ResponsePlace place,
                                             int& number) {
  const Events events(answer, place, number);
  std::vector<NamedEvent> out{events.item(
      "response.output_item.added", empty_item(answer, place.item, place.index, "in_progress"))};
  if (place.item.kind != Kind::call) {
    out.push_back(
        events.content("response.content_part.added", "part", part({.kind = place.item.kind})));
  }
  return out;
}

std::vector<NamedEvent> response_item_grew(const ResponseAnswer& answer, ResponsePlace place,
                                           const ItemPiece& piece, int& number) {
  if (is_custom(answer, place.item)) return {};
  return {Events(answer, place, number)
              .content(cat(piece_name(place.item), ".delta"), "delta", piece.text, piece.scored)};
}

std::vector<NamedEvent> response_item_closed(const ResponseAnswer& answer, ResponsePlace place,
                                             bool whole, int& number) {
  const Events events(answer, place, number);
  const AnswerItem& item = place.item;
  const bool call = item.kind == Kind::call;
  std::vector<NamedEvent> out;
  if (is_custom(answer, item)) {
    const std::string input = custom_input(item.text);
    out.push_back(events.content("response.custom_tool_call_input.delta", "delta", input));
    out.push_back(events.content("response.custom_tool_call_input.done", "input", input));
  } else {
    out.push_back(events.content(cat(piece_name(item), ".done"), call ? "arguments" : "text",
                                 item.text, item.scored));
  }
  if (!call) {
    out.push_back(events.content("response.content_part.done", "part", part(item)));
  }
  out.push_back(
      events.item("response.output_item.done",
                  whole_item(answer, item, place.index, whole ? "completed" : "incomplete")));
  return out;
}

bool response_is_whole(const EndEvent& end) {
  return complete(end);
}

NamedEvent response_end(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                        const EndEvent& end, int& number) {
  const char* type = complete(end) ? "response.completed" : "response.incomplete";
  Json out = {{"type", type}, {"sequence_number", number++}};
  out["response"] = ended(answer, items, end);
  out["timings"] = timings_json(end);
  return {type, dump(out)};
}

NamedEvent response_failed(const ResponseAnswer& answer, std::string_view code,
                           std::string_view message, int& number) {
  Json out = {{"type", "response.failed"}, {"sequence_number", number++}};
  out["response"] = object(answer, "failed");
  out["response"]["error"] = {{"code", code}, {"message", message}};
  return {"response.failed", dump(out)};
}

}  // namespace rbee::server
