#include "rbee/text/go_template/data.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/core/json_shape.h"

namespace rbee::text::go {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostNesting = 100;
constexpr size_t kMostPictures = 1000;  // of a message

// Discarded if it is no JSON.
Json parsed(std::string_view text, std::string_view what) {
  check(shape_of_json(text).depth <= kMostNesting, "template", what, " are nested more than ",
        kMostNesting, " deep");
  return Json::parse(text, nullptr, false);
}

Json parsed_object(std::string_view text, std::string_view what) {
  Json out = parsed(text, what);
  check(out.is_object(), "template", what, " are no JSON object");
  return out;
}

Value value_of(const Json& json) {
  if (json.is_boolean()) return of_bool(json.get<bool>());
  if (json.is_number()) return of_number(json.get<double>());
  if (json.is_string()) return of_text(json.get<std::string>());
  if (json.is_array()) {
    Items items;
    for (const Json& item : json) items.push_back(value_of(item));
    return of_items(std::move(items));
  }
  if (!json.is_object()) return {};
  Fields fields;
  for (const auto& [name, item] : json.items()) fields.emplace_back(name, value_of(item));
  return of_map(std::move(fields));
}

// Of a map whose type prints as JSON.
Value shown_as_json(Value value) {
  value.prints_json = true;
  return value;
}

std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNothing : *found;
}

// A struct's JSON: its members under their own names, without those that are left out when empty.
class Shape {
 public:
  void add(std::string name, const char* json_name, Value value, bool may_lack = false) {
    if (!may_lack || is_true(value)) {
      json_ += cat(json_.empty() ? "" : ",", "\"", json_name, "\":", json_of(value));
    }
    fields_.emplace_back(std::move(name), std::move(value));
  }
  Value end(bool prints_json = false) {
    Value out = of_struct(std::move(fields_));
    out.json = std::make_shared<const std::string>(cat("{", json_, "}"));
    out.prints_json = prints_json;
    return out;
  }

 private:
  Fields fields_;
  std::string json_;
};

// One type prints as its name, several as a list of them.
Value type_of(const Json& type) {
  Value out = value_of(type);
  const bool one = out.kind == Kind::list && out.items->size() == 1;
  if (one && out.items->front().kind == Kind::text) return out.items->front();
  return out;
}

Value property_of(const Json& json);

Value properties_of(const Json& json) {
  Fields fields;
  if (json.is_object()) {
    for (const auto& [name, item] : json.items()) fields.emplace_back(name, property_of(item));
  }
  return shown_as_json(of_map(std::move(fields)));
}

Value property_of(const Json& json) {
  Shape out;
  Items any_of;
  if (const Json& list = member(json, "anyOf"); list.is_array()) {
    for (const Json& one : list) any_of.push_back(property_of(one));
  }
  out.add("AnyOf", "anyOf", of_items(std::move(any_of)), true);
  out.add("Type", "type", type_of(member(json, "type")), true);
  out.add("Items", "items", value_of(member(json, "items")), true);
  out.add("Description", "description",
          of_text(json.is_object() ? text_at(json, "description") : ""), true);
  out.add("Enum", "enum", value_of(member(json, "enum")), true);
  const Json& inner = member(json, "properties");
  out.add("Properties", "properties", inner.is_object() ? properties_of(inner) : Value{}, true);
  out.add("Required", "required", value_of(member(json, "required")), true);
  return out.end();
}

Value parameters_of(const Json& json) {
  Shape out;
  out.add("Type", "type", of_text(json.is_object() ? text_at(json, "type") : ""));
  out.add("Defs", "$defs", value_of(member(json, "$defs")), true);
  out.add("Items", "items", value_of(member(json, "items")), true);
  out.add("Required", "required", value_of(member(json, "required")), true);
  out.add("Properties", "properties", properties_of(member(json, "properties")));
  return out.end(true);
}

Value tool_of(const Json& json) {
  const Json& function = member(json, "function");
  Shape inner;
  inner.add("Name", "name", of_text(function.is_object() ? text_at(function, "name") : ""));
  inner.add("Description", "description",
            of_text(function.is_object() ? text_at(function, "description") : ""));
  inner.add("Parameters", "parameters", parameters_of(member(function, "parameters")));
  Shape out;
  const std::string type = json.is_object() ? text_at(json, "type") : "";
  out.add("Type", "type", of_text(type.empty() ? "function" : type));
  out.add("Items", "items", value_of(member(json, "items")), true);
  out.add("Function", "function", inner.end(true));
  return out.end(true);
}

// Arguments are an object, or the text of one.
Value arguments_of(const Json& json) {
  const Json read = json.is_string() ? parsed(json.get<std::string>(), "arguments") : json;
  return shown_as_json(read.is_object() ? value_of(read) : of_map({}));
}

Value call_of(const Json& json, size_t index) {
  const Json& function = member(json, "function");
  Value inner = of_struct({{"Index", of_integer(static_cast<int64_t>(index))},
                           {"Name", of_text(function.is_object() ? text_at(function, "name") : "")},
                           {"Arguments", arguments_of(member(function, "arguments"))}});
  return of_struct({{"ID", of_text(json.is_object() ? text_at(json, "id") : "")},
                    {"Function", std::move(inner)}});
}

// A text, or the texts among its parts.
std::string content_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (!content.is_array()) return out;
  for (const Json& part : content) {
    if (part.is_object()) out += text_at(part, "text");
  }
  return out;
}

}  // namespace

Value data_of(std::string_view json) {
  return value_of(parsed_object(json, "the variables"));
}

ChatTurn turn_of(const Message& message) {
  ChatTurn out{.role = message.role,
               .content = message.content,
               .thinking = {},
               .tool_name = {},
               .tool_call_id = {}};
  if (message.extra_json.empty()) return out;
  const Json extra = parsed_object(message.extra_json, "a message's fields");
  if (const auto content = extra.find("content"); content != extra.end()) {
    out.content = content_of(*content);
  }
  out.thinking = text_at(extra, "reasoning_content");
  out.tool_name = text_at(extra, "name");
  out.tool_call_id = text_at(extra, "tool_call_id");
  const Json& pictures = member(extra, "images");
  if (pictures.is_number_unsigned()) out.pictures = std::min(pictures.get<size_t>(), kMostPictures);
  const Json& calls = member(extra, "tool_calls");
  for (size_t i = 0; calls.is_array() && i < calls.size(); ++i) {
    out.calls.push_back(call_of(calls[i], i));
  }
  return out;
}

Value message_value(const ChatTurn& turn) {
  return of_struct({{"Role", of_text(turn.role)},
                    {"Content", of_text(turn.content)},
                    {"Thinking", of_text(turn.thinking)},
                    {"Images", of_items(Items(turn.pictures, of_text("")))},
                    {"ToolCalls", of_items(turn.calls)},
                    {"ToolName", of_text(turn.tool_name)},
                    {"ToolCallID", of_text(turn.tool_call_id)}});
}

ChatVariables chat_variables(std::string_view json) {
  ChatVariables out;
  if (json.empty()) return out;
  const Json read = parsed_object(json, "the variables");
  if (const Json& tools = member(read, "tools"); tools.is_array() && !tools.empty()) {
    Items items;
    for (const Json& tool : tools) items.push_back(tool_of(tool));
    out.tools = shown_as_json(of_items(std::move(items)));
  }
  const Json& thinks = member(read, "enable_thinking");
  out.think_is_set = thinks.is_boolean();
  out.thinks = thinks == true;
  out.think_level = text_at(read, "reasoning_effort");
  out.suffix = text_at(read, "suffix");
  if (out.think_level == "none") out.think_level.clear();
  if (!out.think_level.empty()) out.thinks = out.think_is_set = true;
  return out;
}

}  // namespace rbee::text::go
