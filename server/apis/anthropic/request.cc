#include "server/apis/anthropic/request.h"

#include "rbee/core/cat.h"
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
using nlohmann::ordered_json;

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 512;
constexpr size_t kMaxUserBytes = 256;

// A text, or a list of text blocks.
std::string read_blocks(const json& value, const char* field, ObjectReader& reader) {
  if (value.is_string()) return value.get<std::string>();
  std::string out;
  for (const json& block : value.is_array() ? value : json::array({value})) {
    const bool text = block.is_object() && block.value("type", json()) == "text" &&
                      block.value("text", json()).is_string();
    if (!text) {
      reader.note(field, "type(string)", "must be a string or an array of blocks of text", &value);
      return {};
    }
    out += block.at("text").get_ref<const std::string&>();
  }
  return out;
}

// Messages with names in the client's order, because `json` sorts them. Parsed on the first
// access.
class InOrder {
 public:
  explicit InOrder(const JsonBody& body) : body_(body) {}

  const ordered_json& block(size_t message, size_t index) {
    if (!messages_) messages_ = body_.in_order("messages");
    const ordered_json& content = messages_->at(message).at("content");
    return content.is_array() ? content.at(index) : content;
  }

 private:
  const JsonBody& body_;
  std::optional<ordered_json> messages_;
};

// Where a message stands in the body.
struct Place {
  std::string prefix;  // of the names of its fields in errors
  size_t index;
  InOrder& messages;
};

// The blocks of one message. Tool results become messages of their own, before its text.
class Blocks {
 public:
  Blocks(ObjectReader& reader, const Place& place, std::vector<SentMessage>& messages)
      : reader_(reader), place_(place), messages_(messages) {}

  void read(const std::string& role, const json& content) {
    message_.role = role;
    if (content.is_string()) {
      message_.content = content.get<std::string>();
    } else {
      for (const json& block : content.is_array() ? content : json::array({content})) {
        add(block);
        ++index_;
      }
    }
    const bool only_results = results_ && message_.content.empty() && message_.pictures.empty();
    if (!only_results) add_turn();
  }

 private:
  // Joins two turns of one role, because templates want roles to alternate.
  void add_turn() {
    const bool same = !messages_.empty() && messages_.back().role == message_.role &&
                      messages_.back().tool_calls.empty();
    if (!same) return messages_.push_back(std::move(message_));
    SentMessage& turn = messages_.back();
    if (!turn.content.empty() && !message_.content.empty()) turn.content += "\n\n";
    for (SentPicture& picture : message_.pictures) {
      picture.at += turn.content.size();
      turn.pictures.push_back(std::move(picture));
    }
    turn.content += message_.content;
    turn.reasoning += message_.reasoning;
    turn.tool_calls = std::move(message_.tool_calls);
  }

  static std::string text_of(const json& block, const char* name) {
    const json value = block.value(name, json());
    return value.is_string() ? value.get<std::string>() : std::string();
  }

  void add(const json& block) {
    const std::string type = block.is_object() ? text_of(block, "type") : "";
    const bool assistant = message_.role == "assistant";
    if (type == "text" && block.value("text", json()).is_string()) {
      message_.content += text_of(block, "text");
    } else if (type == "tool_result" && !assistant && !text_of(block, "tool_use_id").empty()) {
      add_result(block);
    } else if (type == "tool_use" && assistant && !text_of(block, "name").empty()) {
      message_.tool_calls.push_back({.id = text_of(block, "id"),
                                     .name = text_of(block, "name"),
                                     .arguments = input_of(block)});
    } else if (type == "image" && !assistant) {
      add_picture(block, cat("content[", index_, "].source"));
    } else if (type == "document" && !assistant) {
      add_document(block, cat("content[", index_, "]"), message_.content);
    } else if (type == "thinking" && assistant) {
      message_.reasoning += text_of(block, "thinking");
    } else if (type != "redacted_thinking" || !assistant) {
      reader_.note(
          "content", "type(string)",
          "must be a string or an array of blocks of text, image, document, tool_use, tool_result "
          "and thinking, each where it belongs",
          &block);
    }
  }

  // As the model wrote it, so the beginning of the chat does not change and stays in the cache.
  std::string input_of(const json& block) const {
    if (!block.contains("input")) return "{}";
    return dump_in_order(place_.messages.block(place_.index, index_).at("input"));
  }

  // name: of the source field.
  void add_picture(const json& block, const std::string& name) {
    const json source = block.value("source", json());
    const bool data = source.is_object() && text_of(source, "type") == "base64" &&
                      !text_of(source, "data").empty();
    if (!data) {
      return reader_.note(name, "type(base64)",
                          "must have the type base64 and data; this worker fetches nothing",
                          &source);
    }
    message_.pictures.push_back({.at = message_.content.size(),
                                 .base64 = text_of(source, "data"),
                                 .field = cat(place_.prefix, name, ".data")});
  }

  // Title, context and text, with empty lines between them. name: the block's.
  void add_document(const json& block, const std::string& name, std::string& to) {
    const json source = block.value("source", json()), citations = block.value("citations", json());
    if (citations.is_object() && citations.value("enabled", json()) == true) {
      return reader_.note(name + ".citations", "unsupported", "are not made here", &citations);
    }
    const std::string type = source.is_object() ? text_of(source, "type") : "";
    const json said = type == "text"      ? source.value("data", json())
                      : type == "content" ? source.value("content", json())
                                          : json();
    if (said.is_null() || (type == "text" && !said.is_string())) {
      return reader_.note(
          name + ".source", "type(text)",
          "must have the type text and data, or content; this worker reads no other "
          "files and fetches nothing",
          &source);
    }
    if (!to.empty() && !to.ends_with("\n\n")) to += "\n\n";
    for (const std::string& part : {text_of(block, "title"), text_of(block, "context"),
                                    read_blocks(said, "content", reader_)}) {
      if (!part.empty()) to += part + "\n\n";
    }
  }

  void add_result(const json& block) {
    results_ = true;
    SentMessage out{.role = "tool", .content = {}};
    out.tool_call_id = text_of(block, "tool_use_id");
    const json content = block.value("content", json());
    if (content.is_array()) {
      for (size_t i = 0; i < content.size(); ++i) add_part(content[i], i, out);
    } else if (!content.is_null()) {
      out.content = read_blocks(content, "content", reader_);
    }
    messages_.push_back(std::move(out));
  }

  // A part of a tool result. Templates take pictures only from users, so a result's pictures go to
  // the turn after it.
  void add_part(const json& part, size_t index, SentMessage& result) {
    const std::string type = part.is_object() ? text_of(part, "type") : "";
    const std::string name = cat("content[", index_, "].content[", index, "]");
    if (type == "image") return add_picture(part, name + ".source");
    if (type == "document") return add_document(part, name, result.content);
    result.content += read_blocks(part, "content", reader_);
  }

  ObjectReader& reader_;
  const Place& place_;
  std::vector<SentMessage>& messages_;
  SentMessage message_;
  bool results_ = false;
  size_t index_ = 0;  // of the block
};

void read_message(const json& entry, const Place& place, std::vector<FieldError>& errors,
                  std::vector<SentMessage>& messages) {
  ObjectReader fields(entry, place.prefix, errors);
  const std::string role = fields.text("role").value_or("");
  if (role != "user" && role != "assistant" && role != "system") {
    fields.note("role", "one_of(user, assistant, system)", "must be user, assistant or system",
                fields.find("role"));
  }
  if (const json* content = fields.find("content")) {
    if (role == "system") {
      return messages.push_back(
          {.role = role, .content = read_blocks(*content, "content", fields)});
    }
    Blocks(fields, place, messages).read(role, *content);
  } else {
    fields.note("content", "required", "is missing", nullptr);
  }
}

std::vector<SentMessage> read_messages(ObjectReader& reader, const JsonBody& body,
                                       std::vector<FieldError>& errors) {
  std::vector<SentMessage> out;
  if (const json* system = reader.find("system")) {
    std::string text = read_blocks(*system, "system", reader);
    if (!text.empty()) out.push_back({.role = "system", .content = std::move(text)});
  }
  const json* list = reader.find("messages");
  if (list == nullptr || !list->is_array() || list->empty()) {
    reader.note("messages", list == nullptr ? "required" : "type(array), non_empty",
                "must be an array of at least one message", list);
    return out;
  }
  InOrder in_order(body);
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    if (entry.is_object()) {
      read_message(entry, {cat("messages[", i, "]."), i, in_order}, errors, out);
    } else {
      reader.note(cat("messages[", i, "]"), "type(object)", "must be an object", &entry);
    }
  }
  return out;
}

void read_stops(ObjectReader& reader, GenerateRequest& request) {
  const json* list = reader.find("stop_sequences");
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > kMaxStops) {
    return reader.note("stop_sequences", cat("type(array), max_count(", kMaxStops, ")"),
                       cat("must be an array of at most ", kMaxStops, " texts"), list);
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    const bool fits = entry.is_string() && !entry.get_ref<const std::string&>().empty() &&
                      entry.get_ref<const std::string&>().size() <= kMaxStopBytes;
    if (fits) {
      request.stop.push_back(entry.get<std::string>());
    } else {
      reader.note(cat("stop_sequences[", i, "]"), cat("non_empty, max_length(", kMaxStopBytes, ")"),
                  cat("must be a string of 1 to ", kMaxStopBytes, " bytes"), &entry);
    }
  }
}

// The effort, and a schema that the answer must follow.
void read_output(ObjectReader& reader, const JsonBody& body, std::vector<FieldError>& errors,
                 GenerateRequest& request) {
  const json* config = reader.find("output_config");
  if (config == nullptr) return;
  if (!config->is_object()) {
    return reader.note("output_config", "type(object)", "must be an object", config);
  }
  ObjectReader fields(*config, "output_config.", errors);
  request.constraint = read_output_format(fields, body, errors);
  read_reasoning_effort(fields, "effort", request.chat);
}

// The fields that make the prompt.
void read_chat(ObjectReader& reader, const JsonBody& body, std::vector<FieldError>& errors,
               GenerateRequest& request) {
  request.messages = read_messages(reader, body, errors);
  request.chat.split = true;
  // An assistant's message at the end is the beginning of the answer.
  request.chat.continue_last = !request.messages.empty() && goes_on(request.messages.back());
  read_tools(reader, body, ToolSpelling::anthropic, request.chat);
  read_thinking(reader, errors, request.chat);
  read_output(reader, body, errors, request);
}

void read_user(ObjectReader& reader, std::vector<FieldError>& errors, GenerateRequest& request) {
  const json* metadata = reader.find("metadata");
  if (metadata == nullptr) return;
  if (!metadata->is_object()) {
    return reader.note("metadata", "type(object)", "must be an object", metadata);
  }
  ObjectReader fields(*metadata, "metadata.", errors);
  request.user = fields.text("user_id");
  if (!request.user || (!request.user->empty() && request.user->size() <= kMaxUserBytes)) return;
  fields.note("user_id", cat("non_empty, max_length(", kMaxUserBytes, ")"),
              cat("must have 1 to ", kMaxUserBytes, " bytes"), fields.find("user_id"));
}

}  // namespace

GenerateRequest parse_anthropic(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  GenerateRequest request;
  read_chat(reader, body, errors, request);
  read_adapters(reader, errors, request);
  refuse_unless(reader, "container", nullptr);
  refuse_unless(reader, "mcp_servers", json::array());
  if (reader.find("max_tokens") == nullptr) {
    reader.note("max_tokens", "required", "is missing", nullptr);
  }
  request.max_tokens = reader.integer("max_tokens", {1, INT32_MAX});
  read_sampling(reader, request, engine::SamplingApi::anthropic);
  request.stream = reader.boolean("stream").value_or(false);
  read_stops(reader, request);
  read_user(reader, errors, request);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return request;
}

GenerateRequest parse_anthropic_count(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  GenerateRequest request;
  read_chat(reader, body, errors, request);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return request;
}

}  // namespace rbee::server
