#include "rbee/engine/text/prompt/chat_prompt.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <exception>

#include "rbee/core/error.h"
#include "rbee/core/json_shape.h"
#include "rbee/core/wide_integers.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using Json = nlohmann::ordered_json;

// Most templates take the arguments of earlier calls as an object, DeepSeek's as a text.
enum class Arguments : uint8_t { object, text };

// How a turn of calls is told. Some templates know it by its missing content, others fail on one.
struct CallForm {
  Arguments arguments;
  bool no_content;  // null if there is no text, else an empty one
};
constexpr std::array<CallForm, 4> kCallForms{{{Arguments::object, true},
                                              {Arguments::text, true},
                                              {Arguments::object, false},
                                              {Arguments::text, false}}};

constexpr size_t kMaxNesting = 64;  // of arguments

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_object(std::string_view json) {
  return Json::parse(json, nullptr, false).is_object();
}

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view without_blanks(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// The object with one more member. JSON that clients wrote is put in as it is: a tree would make
// floats of integers beyond 64 bits.
std::string with_member(std::string_view object, std::string_view name, std::string_view value) {
  object = without_blanks(object);
  object.remove_suffix(1);
  const bool first = without_blanks(object).ends_with('{');
  return cat(object, first ? "\"" : ",\"", name, "\":", value, '}');
}

std::string call_json(const ToolCall& call, Arguments form) {
  const bool object = form == Arguments::object && is_object(call.arguments);
  const std::string function = with_member(dump({{"name", call.name}}), "arguments",
                                           object ? call.arguments : dump(Json(call.arguments)));
  return with_member(dump({{"id", call.id}, {"type", "function"}}), "function", function);
}

// `items` are JSON.
std::string list_json(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += cat(out.size() > 1 ? "," : "", item);
  return out + "]";
}

// Texts and pictures in turn, as templates of models that see take them.
Json parts_of(const ChatMessage& message) {
  Json out = Json::array();
  size_t at = 0;
  const auto add_text = [&](size_t end) {
    if (end > at) {
      out.push_back({{"type", "text"}, {"text", message.content.substr(at, end - at)}});
    }
    at = end;
  };
  for (const ChatPicture& picture : message.pictures) {
    add_text(picture.at);
    out.push_back({{"type", "image"}});
  }
  add_text(message.content.size());
  return out;
}

std::string tag_of(int64_t picture) {
  return cat(kPictureTag, picture, "]");
}

// The message's text with its pictures' tags. first: the number of the first of them.
std::string tagged_content(const ChatMessage& message, int64_t first) {
  constexpr std::string_view kPlace = "[img]";
  std::string out;
  std::vector<std::string> given;  // tags for what the text says are places
  size_t at = 0, place = message.content.find(kPlace);
  for (const ChatPicture& picture : message.pictures) {
    std::string tag = tag_of(first++);
    if (place != std::string::npos) {
      given.push_back(std::move(tag));
      place = message.content.find(kPlace, place + kPlace.size());
      continue;
    }
    out += cat(std::string_view(message.content).substr(at, picture.at - at), tag);
    at = picture.at;
  }
  out += message.content.substr(at);
  size_t from = 0;
  for (const std::string& tag : given) {
    from = out.find(kPlace, from);
    out.replace(from, kPlace.size(), tag);
    from += tag.size();
  }
  return out;
}

std::string extra_of(const ChatMessage& message, CallForm form, bool is_go) {
  Json out = Json::object();
  std::vector<std::string> calls;
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  if (!message.tool_calls.empty()) {
    if (message.content.empty() && form.no_content) out["content"] = nullptr;
    // GPT-OSS's name of it, which its template takes beside calls alone.
    if (!message.reasoning.empty() && message.content.empty()) out["thinking"] = message.reasoning;
    for (const ToolCall& call : message.tool_calls) {
      calls.push_back(call_json(call, form.arguments));
    }
  }
  if (!message.pictures.empty() && is_go) out["images"] = message.pictures.size();
  if (!message.pictures.empty() && !is_go) out["content"] = parts_of(message);
  if (!message.tool_call_id.empty()) out["tool_call_id"] = message.tool_call_id;
  if (!message.name.empty()) out["name"] = message.name;
  if (!calls.empty()) return with_member(dump(out), "tool_calls", list_json(calls));
  return out.empty() ? std::string() : dump(out);
}

Json parsed_variables(const ChatOptions& options) {
  if (options.template_variables.empty()) return Json::object();
  Json out = Json::parse(hold_integers(options.template_variables), nullptr, false);
  check(out.is_object(), "chat_template_kwargs", "it is no JSON object");
  return out;
}

std::string today(const char* format) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

std::string variables_of(const ChatOptions& options) {
  const std::string& own = options.template_variables;
  check(own.empty() || is_object(own), "chat_template_kwargs", "it is no JSON object");
  if (!options.calls()) return own;
  std::vector<std::string> tools;
  for (const Tool& tool : options.tools) {
    check(is_object(tool.json), "tools", tool.name, " is no JSON object");
    tools.push_back(tool.json);
  }
  return with_member(own.empty() ? "{}" : own, "tools", list_json(tools));
}

// The chat up to the end of what its last message says: templates cut blanks off messages, and end
// a turn with marks, which a message that goes on has not yet.
std::string up_to_last(std::string chat, std::string_view said) {
  const std::string_view front =
      said.substr(std::min(said.find_first_not_of(kBlanks), said.size()));
  const std::string_view text = without_blanks(front);
  const size_t at = text.empty() ? std::string::npos : chat.rfind(text);
  check(at != std::string::npos, "messages", "the last one's text is not in the chat that the ",
        "model's template makes, so that it cannot be continued");
  const bool blanks = std::string_view(chat).substr(at).starts_with(front);
  chat.resize(at + (blanks ? front.size() : text.size()));
  return chat;
}

}  // namespace

std::string with_suffix(const std::string& variables,
                        const std::function<std::string(std::string_view)>& change) {
  if (variables.find("\"suffix\"") == std::string::npos) return variables;
  Json all = Json::parse(hold_integers(variables), nullptr, false);
  const auto suffix = all.is_object() ? all.find("suffix") : all.end();
  if (!all.is_object() || suffix == all.end() || !suffix->is_string()) return variables;
  *suffix = change(suffix->get<std::string>());
  return release_integers(dump(all));
}

std::string llama_variables(const ChatOptions& options) {
  Json out = parsed_variables(options);
  const auto set = [&](const char* name, Json value) {
    if (!out.contains(name)) out[name] = std::move(value);
  };
  set("enable_thinking", true);
  set("date_string", today("%d %b %Y"));
  set("datetime", today("%b %d %Y"));
  Json tools = Json::array();
  if (options.calls()) {
    for (const Tool& tool : options.tools) {
      tools.push_back(Json::parse(hold_integers(tool.json), nullptr, false));
    }
  }
  const std::string listed = tools.dump(4, ' ', false, Json::error_handler_t::replace);
  set("functions", tools.empty() ? "" : held_text(release_integers(listed)));
  return release_integers(dump(out));
}

void check_nesting(const std::vector<ChatMessage>& messages) {
  for (const ChatMessage& message : messages) {
    for (const ToolCall& call : message.tool_calls) {
      check(shape_of_json(call.arguments).depth <= kMaxNesting, "messages",
            "the arguments of a call are nested more than ", kMaxNesting, " deep");
    }
  }
}

std::string render_chat(const text::ChatTemplate& code, const SpecialTexts& special,
                        const std::vector<ChatMessage>& messages, const ChatOptions& options) {
  const std::string variables = variables_of(options);
  const bool goes_on = options.continue_last;
  check(!goes_on || (!messages.empty() && messages.back().role == "assistant"), "messages",
        "the last one is not the assistant's, so that it cannot be continued");
  const auto render = [&](CallForm form) {
    std::vector<text::Message> list;
    list.reserve(messages.size());
    int64_t pictures = 0;  // so far
    for (const ChatMessage& message : messages) {
      const bool tags = code.is_go() && !message.pictures.empty();
      list.push_back({message.role, tags ? tagged_content(message, pictures) : message.content,
                      extra_of(message, form, code.is_go())});
      pictures += std::ssize(message.pictures);
    }
    const bool new_turn = options.add_generation_prompt && !goes_on;
    std::string chat = code.render(list, new_turn, special.bos, special.eos, variables);
    return goes_on ? up_to_last(std::move(chat), messages.back().content) : chat;
  };
  const bool calls = std::ranges::any_of(
      messages, [](const ChatMessage& message) { return !message.tool_calls.empty(); });
  if (!calls) return render(kCallForms.front());
  std::exception_ptr first;
  for (const CallForm form : kCallForms) {
    try {
      return render(form);
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

std::string with_picture_marks(std::string chat, int64_t pictures, std::string_view mark) {
  for (int64_t picture = 0; picture < pictures; ++picture) {
    const std::string tag = tag_of(picture);
    for (size_t at = chat.find(tag); at != std::string::npos; at = chat.find(tag, at)) {
      chat.replace(at, tag.size(), mark);
      at += mark.size();
    }
  }
  return chat;
}

std::string harmony_variables(const std::string& variables) {
  const Json all = Json::parse(variables, nullptr, false);
  const Json effort = all.is_object() ? all.value("reasoning_effort", Json()) : Json();
  const bool low = effort == "none" || effort == "minimal";
  const bool high = effort == "xhigh" || effort == "max";
  if (!low && !high) return variables;
  return with_member(variables, "reasoning_effort", low ? R"("low")" : R"("high")");
}

PromptEnd end_of(std::string_view prompt, text::ReasoningFormat format) {
  const auto marks = text::marks_of(format);
  const std::string_view text = without_blanks(prompt);
  if (marks && text.ends_with(marks->open)) return PromptEnd::inside_reasoning;
  if (marks && text.ends_with(marks->close)) return PromptEnd::after_reasoning;
  return PromptEnd::plain;
}

}  // namespace rbee::engine
