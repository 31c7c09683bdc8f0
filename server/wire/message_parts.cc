#include "server/wire/message_parts.h"

#include <utility>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using nlohmann::json;

bool is_text(PartSpelling spelling, const json& type) {
  if (type == "text") return true;
  return spelling == PartSpelling::openai_responses &&
         (type == "input_text" || type == "output_text");
}

bool is_picture(PartSpelling spelling, const json& type) {
  return type == (spelling == PartSpelling::openai_chat ? "image_url" : "input_image");
}

// The URL of a part, and the field's name after the part's.
void read_picture(const json& part, PartSpelling spelling, const std::string& place,
                  ObjectReader& fields, const std::string& prefix, SentMessage& message) {
  if (!takes_pictures(message, place, fields)) return;
  const json* url = part.contains("image_url") ? &part.at("image_url") : nullptr;
  std::string name = cat(place, ".image_url");
  if (spelling == PartSpelling::openai_chat) {
    const bool has_url = url != nullptr && url->is_object() && url->contains("url");
    url = has_url ? &url->at("url") : nullptr;
    name += ".url";
  }
  if (url == nullptr) return fields.note(name, "required", "is missing", nullptr);
  add_picture_url(*url, name, fields, prefix, message);
}

}  // namespace

bool goes_on(const SentMessage& message) {
  const bool says = message.content.find_first_not_of(" \t\r\n") != std::string::npos;
  return message.role == "assistant" && says && message.tool_calls.empty();
}

bool takes_pictures(const SentMessage& message, const std::string& name, ObjectReader& fields) {
  if (message.role == "user") return true;
  fields.note(name, "role(user)", "is a picture, which a user's message alone may have", nullptr);
  return false;
}

void add_picture_url(const json& url, const std::string& name, ObjectReader& fields,
                     const std::string& prefix, SentMessage& message) {
  const std::string* text = url.is_string() ? &url.get_ref<const std::string&>() : nullptr;
  const bool data = text != nullptr && text->starts_with("data:") &&
                    text->substr(0, text->find(',')).ends_with(";base64");
  if (!data) {
    return fields.note(name, "data_url",
                       "must be a data: URL in base64; this worker fetches nothing", &url);
  }
  message.pictures.push_back(
      {.at = message.content.size(), .base64 = *text, .field = cat(prefix, name)});
}

void read_parts(const json& value, PartSpelling spelling, ObjectReader& fields,
                const std::string& prefix, SentMessage& message) {
  if (value.is_string()) {
    message.content = value.get<std::string>();
    return;
  }
  size_t index = 0;
  bool text_before = false;
  for (const json& part : value.is_array() ? value : json::array({value})) {
    const std::string place = cat("content[", index++, "]");
    const json type = part.is_object() ? part.value("type", json()) : json();
    const bool text = is_text(spelling, type) && part.value("text", json()).is_string();
    const bool joins = std::exchange(text_before, text) && text;
    if (text) {
      if (joins) message.content += '\n';  // as in llama-server and vLLM
      message.content += part.at("text").get_ref<const std::string&>();
    } else if (message.role == "assistant" && type == "refusal" &&
               part.value("refusal", json()).is_string()) {
      message.content += part.at("refusal").get_ref<const std::string&>();
    } else if (is_picture(spelling, type)) {
      read_picture(part, spelling, place, fields, prefix, message);
    } else {
      fields.note("content", "type(string)",
                  "must be a string or an array of parts that are texts or pictures", &value);
      return;
    }
  }
}

}  // namespace rbee::server
