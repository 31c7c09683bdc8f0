#include "server/wire/chat_fields.h"

#include "rbee/core/cat.h"
#include "server/wire/message_parts.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

SentMessage read_message(const json& entry, const std::string& prefix,
                         std::vector<FieldError>& errors) {
  ObjectReader fields(entry, prefix, errors);
  SentMessage out;
  out.role = fields.text("role").value_or("");
  if (fields.find("role") == nullptr || out.role.empty()) {
    fields.note("role", "required", "is missing", nullptr);
  }
  if (out.role == "developer") out.role = "system";  // the newer name
  const bool function = out.role == "function";      // the older form; answers the call before it
  if (function) out.role = "tool";
  out.tool_calls = read_tool_calls(fields, errors, prefix);
  out.tool_call_id = fields.text("tool_call_id").value_or("");
  if (out.role == "tool" && !function && out.tool_call_id.empty()) {
    fields.note("tool_call_id", "required", "is missing", nullptr);
  }
  out.name = fields.text("name").value_or("");
  if (function && out.name.empty()) fields.note("name", "required", "is missing", nullptr);
  out.reasoning = fields.text("reasoning").value_or("");
  if (out.reasoning.empty()) out.reasoning = fields.text("reasoning_content").value_or("");
  const std::string refusal = fields.text("refusal").value_or("");
  if (const json* content = fields.find("content")) {
    read_parts(*content, PartSpelling::openai_chat, fields, prefix, out);
  } else if (out.role == "assistant" && entry.contains("content")) {
    out.content = refusal;
  } else if (out.tool_calls.empty()) {
    fields.note("content", "required", "is missing", nullptr);
  }
  return out;
}

}  // namespace

std::vector<SentMessage> read_messages(ObjectReader& reader, std::vector<FieldError>& errors) {
  std::vector<SentMessage> out;
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

}  // namespace rbee::server
