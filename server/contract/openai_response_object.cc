#include "server/contract/openai_response_object.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/contract/generate_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// ---- requests

void refuse_what_is_not_done(ObjectReader& reader) {
  struct Neutral {
    const char* field;
    std::vector<json> values;
  };
  static const std::vector<Neutral> fields = {
      {"tools", {json::array()}},
      {"tool_choice", {"auto", "none"}},
      {"previous_response_id", {}},
      {"conversation", {}},
      {"background", {false}},
      {"prompt", {}},
      {"text", {json::object(), {{"format", {{"type", "text"}}}}}},
      {"top_logprobs", {0}},
      {"truncation", {"disabled"}},
      {"include", {json::array()}},
  };
  for (const Neutral& neutral : fields) {
    const json* value = reader.find(neutral.field);
    if (value == nullptr || std::ranges::count(neutral.values, *value) > 0) continue;
    reader.note(neutral.field, "unsupported", "asks for what this worker does not do", value);
  }
}

// A text, or a list of parts that are texts of either side.
std::string read_content(const json& value, ObjectReader& message) {
  if (value.is_string()) return value.get<std::string>();
  std::string out;
  for (const json& part : value.is_array() ? value : json::array({value})) {
    const json type = part.is_object() ? part.value("type", json()) : json();
    const bool text = (type == "input_text" || type == "output_text" || type == "text") &&
                      part.value("text", json()).is_string();
    if (!text) {
      message.note("content", "type(string)", "must be a string or an array of parts of text",
                   &value);
      return {};
    }
    out += part.at("text").get_ref<const std::string&>();
  }
  return out;
}

Message read_item(const json& entry, const std::string& prefix, std::vector<FieldError>& errors) {
  ObjectReader fields(entry, prefix, errors);
  Message out;
  const std::string type = fields.text("type").value_or("message");
  if (type != "message") {
    fields.note("type", "one_of(message)", "asks for what this worker does not do",
                fields.find("type"));
    return out;
  }
  out.role = fields.text("role").value_or("");
  if (out.role.empty()) fields.note("role", "required", "is missing", nullptr);
  if (out.role == "developer") out.role = "system";
  if (const json* content = fields.find("content")) {
    out.content = read_content(*content, fields);
  } else {
    fields.note("content", "required", "is missing", nullptr);
  }
  return out;
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
      request.messages.push_back(read_item(entry, cat("input[", i, "]."), errors));
    } else {
      reader.note(cat("input[", i, "]"), "type(object)", "must be an object", &entry);
    }
  }
}

// ---- answers

std::string message_id(const ResponseAnswer& answer) {
  return "msg_" + answer.id;
}

bool complete(const EndEvent& end) {
  return end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
}

Json part(std::string_view text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

Json item(const ResponseAnswer& answer, std::string_view status) {
  return {{"id", message_id(answer)},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", Json::array()}};
}

Json whole_item(const ResponseAnswer& answer, std::string_view text, const EndEvent& end) {
  Json out = item(answer, complete(end) ? "completed" : "incomplete");
  out["content"].push_back(part(text));
  return out;
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
  out["parallel_tool_calls"] = false;
  out["previous_response_id"] = nullptr;
  out["store"] = false;
  out["temperature"] = asked.temperature.value_or(1.0f);
  out["text"]["format"]["type"] = "text";
  out["tool_choice"] = "auto";
  out["tools"] = Json::array();
  out["top_p"] = asked.top_p.value_or(1.0f);
  out["truncation"] = "disabled";
  out["usage"] = nullptr;
  out["metadata"] = Json::object();
  return out;
}

Json ended(const ResponseAnswer& answer, std::string_view text, const EndEvent& end) {
  Json out = object(answer, complete(end) ? "completed" : "incomplete");
  if (!complete(end)) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  out["output"].push_back(whole_item(answer, text, end));
  out["usage"] = {{"input_tokens", end.prompt_tokens},
                  {"input_tokens_details", {{"cached_tokens", 0}}},
                  {"output_tokens", end.tokens_out},
                  {"output_tokens_details", {{"reasoning_tokens", 0}}},
                  {"total_tokens", int64_t{end.prompt_tokens} + end.tokens_out}};
  return out;
}

Json event(std::string_view type, int number) {
  return {{"type", type}, {"sequence_number", number}};
}

Json part_event(std::string_view type, const ResponseAnswer& answer, int number) {
  Json out = event(type, number);
  out["item_id"] = message_id(answer);
  out["output_index"] = 0;
  out["content_index"] = 0;
  return out;
}

}  // namespace

ResponseRequest parse_response_request(std::string_view body) {
  const json parsed = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(parsed, "", errors);
  ResponseRequest out;
  GenerateRequest& request = out.generate;
  out.instructions = reader.text("instructions").value_or("");
  if (!out.instructions.empty()) {
    request.messages.push_back({.role = "system", .content = out.instructions});
  }
  read_input(reader, errors, request);
  refuse_what_is_not_done(reader);
  reader.text("model");  // there is one, whatever it is called
  request.max_tokens = reader.integer("max_output_tokens", {1, INT32_MAX}).value_or(INT32_MAX);
  read_sampling(reader, request);
  request.temperature = request.temperature.value_or(1.0f);
  request.top_p = request.top_p.value_or(1.0f);
  request.top_k = request.top_k.value_or(0);
  read_turn(reader, request);
  request.stream = reader.boolean("stream").value_or(false);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::string response_json(const ResponseAnswer& answer, std::string_view text,
                          const EndEvent& end) {
  return dump(ended(answer, text, end));
}

std::string response_state_json(const ResponseAnswer& answer, std::string_view type, int number) {
  Json out = event(type, number);
  out["response"] = object(answer, "in_progress");
  return dump(out);
}

std::string response_item_added_json(const ResponseAnswer& answer, int number) {
  Json out = event("response.output_item.added", number);
  out["output_index"] = 0;
  out["item"] = item(answer, "in_progress");
  return dump(out);
}

std::string response_part_added_json(const ResponseAnswer& answer, int number) {
  Json out = part_event("response.content_part.added", answer, number);
  out["part"] = part("");
  return dump(out);
}

std::string response_delta_json(const ResponseAnswer& answer, std::string_view text, int number) {
  Json out = part_event("response.output_text.delta", answer, number);
  out["delta"] = text;
  out["logprobs"] = Json::array();
  return dump(out);
}

std::string response_text_done_json(const ResponseAnswer& answer, std::string_view text,
                                    int number) {
  Json out = part_event("response.output_text.done", answer, number);
  out["text"] = text;
  out["logprobs"] = Json::array();
  return dump(out);
}

std::string response_part_done_json(const ResponseAnswer& answer, std::string_view text,
                                    int number) {
  Json out = part_event("response.content_part.done", answer, number);
  out["part"] = part(text);
  return dump(out);
}

std::string response_item_done_json(const ResponseAnswer& answer, std::string_view text,
                                    const EndEvent& end, int number) {
  Json out = event("response.output_item.done", number);
  out["output_index"] = 0;
  out["item"] = whole_item(answer, text, end);
  return dump(out);
}

std::string_view response_end_type(const EndEvent& end) {
  return complete(end) ? "response.completed" : "response.incomplete";
}

std::string response_end_json(const ResponseAnswer& answer, std::string_view text,
                              const EndEvent& end, int number) {
  Json out = event(response_end_type(end), number);
  out["response"] = ended(answer, text, end);
  return dump(out);
}

std::string response_failed_json(const ResponseAnswer& answer, std::string_view code,
                                 std::string_view message, int number) {
  Json out = event("response.failed", number);
  out["response"] = object(answer, "failed");
  out["response"]["error"] = {{"code", code}, {"message", message}};
  return dump(out);
}

}  // namespace rbee::server
