#include "server/apis/own/request.h"

#include <utility>

#include "rbee/core/cat.h"
#include "server/wire/constraint_fields.h"
#include "server/wire/generate_fields.h"
#include "server/wire/lora_fields.h"
#include "server/wire/sampling_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

void read_operation(ObjectReader& reader) {
  const std::optional<std::string> operation = reader.text("operation");
  if (operation && *operation != "infer") {
    reader.note("operation", "one_of(infer)", "is not one that this worker does; it does: infer",
                reader.find("operation"));
  }
}

std::vector<SentMessage> read_messages(ObjectReader& reader, std::vector<FieldError>& errors) {
  std::vector<SentMessage> messages;
  const json* list = reader.find("messages");
  if (list == nullptr) return messages;
  if (!list->is_array() || list->empty()) {
    reader.note("messages", "type(array), non_empty", "must be an array of at least one message",
                list);
    return messages;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    if (!entry.is_object()) {
      reader.note(cat("messages[", i, "]"), "type(object)", "must be an object", &entry);
      continue;
    }
    ObjectReader fields(entry, cat("messages[", i, "]."), errors);
    for (const char* name : {"role", "content"}) {
      if (fields.find(name) == nullptr) fields.note(name, "required", "is missing", nullptr);
    }
    std::optional<std::string> role = fields.text("role");
    std::optional<std::string> content = fields.text("content");
    if (role && role->empty()) fields.note("role", "non_empty", "is empty", fields.find("role"));
    messages.push_back({std::move(role).value_or(""), std::move(content).value_or("")});
  }
  return messages;
}

// The model's input: exactly one of prompt and messages.
void read_input(ObjectReader& reader, std::vector<FieldError>& errors, GenerateRequest& request) {
  const bool has_prompt = reader.find("prompt") != nullptr;
  const bool has_messages = reader.find("messages") != nullptr;
  if (has_prompt && has_messages) {
    reader.note("messages", "exclusive(prompt)", "cannot be given together with prompt", nullptr);
  } else if (!has_prompt && !has_messages) {
    reader.note("prompt", "required", "is missing (or give messages)", nullptr);
  }
  if (std::optional<std::string> prompt = reader.text("prompt")) {
    if (prompt->empty()) reader.note("prompt", "non_empty", "is empty", reader.find("prompt"));
    request.prompt = std::move(*prompt);
  }
  request.messages = read_messages(reader, errors);
}

}  // namespace

GenerateRequest parse_generate(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  GenerateRequest request;
  read_operation(reader);
  read_input(reader, errors, request);
  request.max_tokens = read_limit(reader, "max_tokens", 1);
  read_sampling(reader, request);
  read_turn(reader, request);
  read_adapters(reader, errors, request);
  read_stop(reader, request);
  request.constraint = read_constraint(reader, body, errors);
  request.stream = reader.boolean("stream");
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return request;
}

}  // namespace rbee::server
