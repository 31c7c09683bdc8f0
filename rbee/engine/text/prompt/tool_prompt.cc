#include "rbee/engine/text/prompt/tool_prompt.h"

#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/core/wide_integers.h"
#include "rbee/engine/text/prompt/chat_prompt.h"
#include "rbee/io/json_parse.h"
#include "rbee/text/output/xml_form.h"

namespace rbee::engine {
namespace {

using Json = nlohmann::ordered_json;
using text::ToolFormat;
namespace deepseek = text::deepseek;

// Of trees whose integers and texts are held.
std::string dump(const Json& value) {
  return release_integers(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string json_call(const ToolCall& call, const char* key, const Json& arguments) {
  Json out = {{"name", held_text(call.name)}};
  out[key] = arguments;
  return dump(out);
}

std::string without_quotes(const Json& value) {
  const std::string text = dump(value);
  return text.starts_with('"') ? Json::parse(text).get<std::string>() : text;
}

std::string xml_call(const ToolCall& call, const Json& arguments, const text::XmlForm& form) {
  const bool framed = !form.open.empty();
  std::string out =
      cat(form.open, framed ? "\n" : "", form.function, call.name, form.name_end, "\n");
  if (!arguments.is_object()) {
    return cat(out, call.arguments, "\n", form.function_end, framed ? "\n" : "", form.close);
  }
  for (const auto& [name, value] : arguments.items()) {
    out += cat(form.parameter, name, form.key_end, form.value.empty() ? "" : "\n", form.value,
               form.gap, without_quotes(value), form.gap, form.value_end, "\n");
  }
  return cat(out, form.function_end, framed ? "\n" : "", form.close);
}

std::string written_call(const ToolCall& call, ToolFormat format) {
  Json arguments = Json::parse(hold_integers(call.arguments), nullptr, false);
  if (!arguments.is_object()) {
    // A model's mistakes stay as they are.
    arguments = call.arguments.empty() ? Json::object() : Json(call.arguments);
  }
  const std::string text = arguments.is_object() ? dump(arguments) : call.arguments;
  switch (format) {
    case ToolFormat::none:
      return {};
    case ToolFormat::hermes:
      return cat("<tool_call>\n", json_call(call, "arguments", arguments), "\n</tool_call>");
    case ToolFormat::llama3:
      return json_call(call, "parameters", arguments);
    case ToolFormat::mistral:
    case ToolFormat::generic:
      return json_call(call, "arguments", arguments);
    case ToolFormat::mistral_named:
      return cat("[TOOL_CALLS]", call.name, "[ARGS]", text);
    case ToolFormat::deepseek_v3:
      return cat(deepseek::kCallBegin, "function", deepseek::kSeparator, call.name, "\n```json\n",
                 text, "\n```", deepseek::kCallEnd);
    case ToolFormat::deepseek_v31:
      return cat(deepseek::kCallBegin, call.name, deepseek::kSeparator, text, deepseek::kCallEnd);
    case ToolFormat::kimi_k2: {
      const text::FramedMarks& marks = text::framed_marks(format);
      return cat(marks.call_begin, "functions.", call.name, ":0", marks.separator, text,
                 marks.call_end);
    }
    case ToolFormat::qwen3_coder:
    case ToolFormat::seed_oss:
    case ToolFormat::minimax_m2:
    case ToolFormat::glm45:
      return xml_call(call, arguments, *text::xml_form(format));
    case ToolFormat::harmony:
      return cat("<|channel|>commentary to=functions.", call.name, " <|constrain|>json<|message|>",
                 text, "<|call|>");
  }
  return {};
}

// The texts around calls, and between two.
struct Frame {
  std::string_view begin, gap, end;
};

Frame frame_of(ToolFormat format) {
  switch (format) {
    case ToolFormat::llama3:
      return {"", "; ", ""};
    case ToolFormat::mistral:
      return {"[TOOL_CALLS][", ", ", "]"};
    case ToolFormat::deepseek_v3:
      return {deepseek::kCallsBegin, "\n", deepseek::kCallsEnd};
    case ToolFormat::deepseek_v31:
    case ToolFormat::kimi_k2:
      return {text::framed_marks(format).calls_begin, "", text::framed_marks(format).calls_end};
    case ToolFormat::hermes:
    case ToolFormat::qwen3_coder:
    case ToolFormat::seed_oss:
    case ToolFormat::minimax_m2:
    case ToolFormat::glm45:
    case ToolFormat::generic:
      return {"", "\n", ""};
    default:
      return {"", "", ""};
  }
}

std::string tool_prompt(const std::vector<Tool>& tools, ToolFormat format) {
  std::string out = "You may call these functions to answer the user:\n";
  for (const Tool& tool : tools) {
    const Json parsed = Json::parse(hold_integers(tool.json), nullptr, false);
    check(parsed.is_object() && parsed.contains("function"), "tools", tool.name, " is no function");
    out += cat(dump(parsed.at("function")), "\n");
  }
  const ToolCall example{.id = "", .name = "NAME", .arguments = R"({"ARGUMENT": "VALUE"})"};
  return cat(out, "To call one, write nothing but\n", written_calls({example}, format),
             "\nThe next message holds its result.");
}

// A result becomes a message of the user; several of a turn are one message.
void add_result(std::vector<ChatMessage>& out, ChatMessage message, bool again) {
  const std::string_view named = message.name.empty() ? "" : " of ";
  const std::string begin = cat("Result", named, message.name, ":\n");
  if (!again) out.push_back({.role = "user", .content = {}});
  ChatMessage& to = out.back();
  to.content += cat(to.content.empty() ? "" : "\n\n", begin);
  for (ChatPicture& picture : message.pictures) {
    picture.at += to.content.size();
    to.pictures.push_back(std::move(picture));
  }
  to.content += message.content;
}

}  // namespace

std::string written_calls(const std::vector<ToolCall>& calls, ToolFormat format) {
  const Frame frame = frame_of(format);
  std::string out;
  for (const ToolCall& call : calls) {
    out += cat(out.empty() ? frame.begin : frame.gap, written_call(call, format));
  }
  return cat(out, frame.end);
}

bool shows_tools(const text::ChatTemplate& code) {
  const std::vector<ChatMessage> chat = {{.role = "user", .content = "Hi"}};
  ChatOptions options;
  try {
    const std::string without = render_chat(code, {}, chat, options);
    options.tools.push_back({.name = "f",
                             .json = R"({"type":"function","function":{"name":"f","description":"g",
                                 "parameters":{"type":"object","properties":{}}}})",
                             .parameters = R"({"type":"object","properties":{}})"});
    return render_chat(code, {}, chat, options) != without;
  } catch (const Error&) {
    return true;
  }
}

bool takes_system(const text::ChatTemplate& code) {
  const ChatMessage user{.role = "user", .content = "Hi"};
  try {
    return render_chat(code, {}, {{.role = "system", .content = "g"}, user}, {}) !=
           render_chat(code, {}, {user}, {});
  } catch (const Error&) {
    return false;
  }
}

std::vector<ChatMessage> with_tool_prompt(std::vector<ChatMessage> messages,
                                          const std::vector<Tool>& tools, ToolFormat format,
                                          ToolPromptPlace place) {
  std::vector<ChatMessage> out;
  const std::string description = tool_prompt(tools, format);
  const bool system = !messages.empty() && messages.front().role == "system";
  if (place == ToolPromptPlace::user && !messages.empty()) {
    for (ChatPicture& picture : messages.front().pictures) picture.at += description.size() + 2;
    messages.front().content = cat(description, "\n\n", messages.front().content);
  } else if (!system) {
    out.push_back({.role = "system", .content = description});
  }
  bool result = false;  // the message before is one
  for (ChatMessage& message : messages) {
    const bool again = std::exchange(result, message.role == "tool");
    if (result) {
      add_result(out, std::move(message), again);
      continue;
    }
    if (out.empty() && place == ToolPromptPlace::system)
      message.content += cat(message.content.empty() ? "" : "\n\n", description);
    if (!message.tool_calls.empty()) {
      message.content += cat(message.content.empty() ? "" : "\n",
                             written_calls(std::exchange(message.tool_calls, {}), format));
    }
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace rbee::engine
