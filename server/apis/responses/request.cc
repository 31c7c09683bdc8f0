#include "server/apis/responses/request.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/wire/constraint_fields.h"
#include "server/wire/generate_fields.h"
#include "server/wire/lora_fields.h"
#include "server/wire/message_parts.h"
#include "server/wire/reasoning_fields.h"
#include "server/wire/sampling_fields.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

void refuse_what_is_not_done(ObjectReader& reader) {
  struct Neutral {
    const char* field;
    std::vector<json> values;
  };
  static const std::vector<Neutral> fields = {
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

// Clients may leave the type of a reference out.
bool is_reference(const json& item) {
  if (!item.is_object()) return false;
  const json type = item.value("type", json());
  if (!type.is_null()) return type == "item_reference";
  return item.contains("id") && !item.contains("role") && !item.contains("content");
}

// The input with items in the place of references to them; nothing if it has none.
std::optional<std::string> resolved_input(const JsonBody& body, const json& input,
                                          const FindItem& find) {
  if (!find || !input.is_array() || std::ranges::none_of(input, is_reference)) return std::nullopt;
  auto items = body.in_order("input");
  for (size_t i = 0; i < items.size(); ++i) {
    if (!is_reference(input[i])) continue;
    const json id = input[i].value("id", json());
    const std::optional<std::string> found = id.is_string() ? find(id) : std::nullopt;
    if (!found)
      fail(Code::not_found, cat("input[", i, "]"), "Item with id ", shown(id), " not found.");
    items[i] = parse_in_order(*found);
  }
  return dump_in_order(items);
}

// Returns the input's items with those that it refers to; nothing where it refers to none.
std::optional<std::string> read_input(ObjectReader& reader, const JsonBody& body,
                                      std::vector<FieldError>& errors, const FindItem& find,
                                      GenerateRequest& request) {
  const json* input = reader.find("input");
  const json* previous = reader.find("previous_response_id");
  const bool goes_on = (previous != nullptr && previous->is_string() && *previous != "") ||
                       reader.find("conversation") != nullptr;
  if (input == nullptr && goes_on) return std::nullopt;  // what was said before is enough
  const bool text = input != nullptr && input->is_string();
  if (input == nullptr || (!text && !input->is_array()) || input->empty() || *input == "") {
    reader.note("input", input == nullptr ? "required" : "type(string), non_empty",
                "must be a text or an array of at least one message", input);
    return std::nullopt;
  }
  std::optional<std::string> resolved = resolved_input(body, *input, find);
  read_response_items(resolved ? parse_array(*resolved) : *input, errors, request.messages);
  return resolved;
}

// "conversation": an id, or an object that has it.
void read_conversation(ObjectReader& reader, ResponseRequest& out) {
  const json* value = reader.find("conversation");
  if (value == nullptr) return;
  const json id = value->is_object() ? value->value("id", json()) : *value;
  if (!id.is_string() || id == "") {
    return reader.note("conversation", "type(string, object), non_empty",
                       "must be the id of a conversation, or an object with its id", value);
  }
  out.conversation = id.get<std::string>();
  if (!out.previous_id.empty()) {
    reader.note("conversation", "excludes(previous_response_id)",
                "cannot be sent with previous_response_id: each names the chat before the input",
                value);
  }
}

// What is kept, and of which chat. resolved: what read_input() returned.
void read_memory(ObjectReader& reader, const JsonBody& body, std::optional<std::string> resolved,
                 ResponseRequest& out) {
  out.store = reader.boolean("store").value_or(true);
  out.previous_id = reader.text("previous_response_id").value_or("");
  read_conversation(reader, out);
  out.background = reader.boolean("background").value_or(false);
  if (out.background && !out.store) {
    reader.note("background", "requires(store)",
                "needs a response that is kept: store must not be false",
                reader.find("background"));
  }
  if (!out.store && out.conversation.empty()) return;
  if (!resolved) {
    const bool given = reader.find("input") != nullptr;
    resolved = given ? dump_in_order(body.in_order("input")) : "[]";
  }
  out.input = std::make_shared<const std::string>(std::move(*resolved));
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

}  // namespace

void read_response_items(const json& items, std::vector<FieldError>& errors,
                         std::vector<SentMessage>& messages, std::string_view list) {
  if (items.is_string()) {
    messages.push_back({.role = "user", .content = items.get<std::string>()});
    return;
  }
  const json holder = json::object();
  ObjectReader reader(holder, "", errors);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string name = cat(list, "[", i, "]");
    if (items[i].is_object()) {
      read_item(items[i], name + ".", errors, messages);
    } else {
      reader.note(name, "type(object)", "must be an object", &items[i]);
    }
  }
}

ResponseRequest parse_response_request(std::string_view text) {
  return parse_response_request_with(text, nullptr);
}

ResponseRequest parse_response_request_with(std::string_view text, const FindItem& find) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ResponseRequest out;
  GenerateRequest& request = out.generate;
  out.instructions = reader.text("instructions").value_or("");
  if (!out.instructions.empty()) {
    request.messages.push_back({.role = "system", .content = out.instructions});
  }
  std::optional<std::string> resolved = read_input(reader, body, errors, find, request);
  refuse_what_is_not_done(reader);
  read_include(reader, request);
  request.chat.split = true;
  read_tools(reader, body, ToolSpelling::openai_responses, request.chat);
  read_reasoning(reader, body, request.chat);
  read_effort(reader, errors, request.chat);
  read_text_form(reader, body, errors, out);
  read_metadata(reader, body, out);
  read_memory(reader, body, std::move(resolved), out);
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

}  // namespace rbee::server
