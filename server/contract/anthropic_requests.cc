#include "server/contract/anthropic_requests.h"

#include "rbee/core/cat.h"
#include "server/contract/generate_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 100;
constexpr size_t kMaxUserBytes = 256;

// A text, or a list of blocks that are texts.
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

Message read_message(const json& entry, const std::string& prefix,
                     std::vector<FieldError>& errors) {
  ObjectReader fields(entry, prefix, errors);
  Message out{.role = fields.text("role").value_or(""), .content = {}};
  if (out.role != "user" && out.role != "assistant") {
    fields.note("role", "one_of(user, assistant)", "must be user or assistant",
                fields.find("role"));
  }
  if (const json* content = fields.find("content")) {
    out.content = read_blocks(*content, "content", fields);
  } else {
    fields.note("content", "required", "is missing", nullptr);
  }
  return out;
}

std::vector<Message> read_messages(ObjectReader& reader, std::vector<FieldError>& errors) {
  std::vector<Message> out;
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
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    if (entry.is_object()) {
      out.push_back(read_message(entry, cat("messages[", i, "]."), errors));
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

// Fields of which only what asks for nothing is taken.
void refuse_what_is_not_done(ObjectReader& reader) {
  const json* tools = reader.find("tools");
  if (tools != nullptr && *tools != json::array()) {
    reader.note("tools", "unsupported", "asks for what this worker does not do", tools);
  }
  const json* thinking = reader.find("thinking");
  if (thinking != nullptr && *thinking != json({{"type", "disabled"}})) {
    reader.note("thinking", "unsupported", "asks for what this worker does not do", thinking);
  }
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

GenerateRequest parse_anthropic(std::string_view body) {
  const json object = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  GenerateRequest request;
  request.messages = read_messages(reader, errors);
  reader.text("model");  // there is one, whatever it is called
  if (reader.find("max_tokens") == nullptr) {
    reader.note("max_tokens", "required", "is missing", nullptr);
  }
  request.max_tokens = reader.integer("max_tokens", {1, INT32_MAX});
  request.temperature = reader.number("temperature", {0, 1}).value_or(1.0f);
  request.top_p = reader.number("top_p", {0, 1}).value_or(1.0f);
  request.top_k = reader.integer("top_k", {0, INT32_MAX}).value_or(0);
  request.stream = reader.boolean("stream").value_or(false);
  read_stops(reader, request);
  read_user(reader, errors, request);
  refuse_what_is_not_done(reader);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return request;
}

std::vector<Message> parse_anthropic_count(std::string_view body) {
  const json object = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  std::vector<Message> messages = read_messages(reader, errors);
  refuse_what_is_not_done(reader);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return messages;
}

}  // namespace rbee::server
