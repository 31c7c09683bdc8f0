#include "server/wire/tool_fields.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/wide_integers.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMaxTools = 128;
constexpr const char* kCustomParameters =
    R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"],
        "additionalProperties":false})";
constexpr size_t kMaxName = 128;  // Anthropic's; OpenAI's is 64

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

class Tools {
 public:
  Tools(ObjectReader& reader, const JsonBody& body, ToolSpelling spelling, ChatFields& chat)
      : reader_(reader), body_(body), spelling_(spelling), chat_(chat) {}

  void read() {
    read_list();
    read_choice();
    if (spelling_ == ToolSpelling::anthropic) return;
    chat_.parallel_tool_calls = reader_.boolean("parallel_tool_calls").value_or(true);
    if (spelling_ == ToolSpelling::openai_chat) read_older_form();
  }

 private:
  void read_list() {
    const json* list = reader_.find("tools");
    if (list == nullptr) return;
    if (!list->is_array() || list->size() > kMaxTools) {
      return reader_.note("tools", cat("type(array), max_count(", kMaxTools, ")"),
                          cat("must be an array of at most ", kMaxTools, " tools"), list);
    }
    if (list->empty()) return;
    const ordered_json ordered = body_.in_order("tools");
    for (size_t i = 0; i < list->size(); ++i)
      read_tool((*list)[i], ordered[i], cat("tools[", i, "]"));
  }

  // "functions" and "function_call", OpenAI's fields before tools: an answer has at most one call.
  void read_older_form() {
    const json* list = reader_.find("functions");
    const json* choice = reader_.find("function_call");
    for (const auto& [older, newer] :
         {std::pair{"functions", "tools"}, std::pair{"functions", "tool_choice"},
          std::pair{"function_call", "tools"}, std::pair{"function_call", "tool_choice"}}) {
      if (reader_.find(older) == nullptr || reader_.find(newer) == nullptr) continue;
      return reader_.note(older, cat("exclusive(", newer, ")"),
                          cat("cannot be given together with ", newer), nullptr);
    }
    if (list != nullptr) read_functions(*list);
    if (choice != nullptr) read_function_choice(*choice);
  }

  void read_functions(const json& list) {
    if (!list.is_array() || list.size() > kMaxTools) {
      return reader_.note("functions", cat("type(array), max_count(", kMaxTools, ")"),
                          cat("must be an array of at most ", kMaxTools, " functions"), &list);
    }
    const ordered_json ordered = body_.in_order("functions");
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = cat("functions[", i, "]");
      if (list[i].is_object()) {
        read_function(list[i], ordered[i], at);
      } else {
        reader_.note(at, "type(object)", "must be an object", &list[i]);
      }
    }
    chat_.older_calls = !list.empty();
    if (chat_.older_calls) chat_.parallel_tool_calls = false;
  }

  void read_function_choice(const json& choice) {
    if (choice == "none") {
      chat_.tool_choice = "none";
    } else if (choice.is_object()) {
      const json name = choice.value("name", json());
      chat_.tool_choice = "required";
      chat_.tool = name.is_string() ? name.get<std::string>() : "";
      if (std::ranges::count(chat_.tools, chat_.tool, &SentTool::name) > 0) return;
      reader_.note("function_call", "one_of(functions)",
                   "names a function that is not in functions", &choice);
    } else if (choice != "auto") {
      reader_.note("function_call", "one_of(none, auto)",
                   "must be none, auto or an object that names a function", &choice);
    }
  }

  void read_tool(const json& entry, const ordered_json& ordered, const std::string& at) {
    if (!entry.is_object()) {
      return reader_.note(at, "type(object)", "must be an object", &entry);
    }
    const bool chat = spelling_ == ToolSpelling::openai_chat;
    const bool responses = spelling_ == ToolSpelling::openai_responses;
    const json type = entry.value("type", json());
    // Chats also accept the other APIs' spelling: a name in the tool itself, without a type.
    const bool anthropic = chat && entry.contains("input_schema");
    if (type == "custom" && (responses || chat) && !anthropic) return read_custom(entry, at);
    if (is_left_out(type)) return;
    const bool untyped = !responses && (type.is_null() || type == "custom");
    if (!untyped && !((responses || chat) && type == "function")) {
      return reader_.note(at + ".type", "one_of(function)",
                          "is not a kind of tool that this worker has; it has functions", &type);
    }
    const bool nested = chat && entry.contains("function");
    if (!nested && (!chat || entry.contains("name"))) return read_function(entry, ordered, at);
    if (!nested || !entry["function"].is_object()) {
      return reader_.note(at + ".function", "type(object)", "must be an object", nullptr);
    }
    read_function(entry["function"], ordered["function"], at + ".function");
  }

  // A custom tool: a function with one text argument, which may have a format.
  void read_custom(const json& entry, const std::string& at) {
    const bool nested = spelling_ == ToolSpelling::openai_chat;
    const json custom = nested ? entry.value("custom", json()) : entry;
    const std::string place = nested ? at + ".custom" : at;
    if (!custom.is_object()) {
      return reader_.note(place, "type(object)", "must be an object", &custom);
    }
    SentTool form;
    if (!read_form(custom, place, form)) return;
    ordered_json function;
    for (const char* name : {"name", "description"}) {
      if (!custom.contains(name)) continue;
      const json& value = custom.at(name);
      function[name] = value.is_string() ? json(held_text(value)) : value;
    }
    function["parameters"] = ordered_json::parse(kCustomParameters);
    if (!form.syntax.empty()) {
      function["parameters"]["properties"]["input"]["description"] =
          cat("Has to follow this ", form.syntax == "lark" ? "grammar in Lark's notation" : "regex",
              ":\n", form.definition);
    }
    const size_t known = chat_.tools.size();
    read_function(json(function), function, place);
    if (chat_.tools.size() == known) return;
    chat_.tools.back().custom = true;
    chat_.tools.back().syntax = std::move(form.syntax);
    chat_.tools.back().definition = std::move(form.definition);
  }

  // False if it is invalid. Chats put a grammar into a field of its own.
  bool read_form(const json& custom, const std::string& at, SentTool& form) {
    const json format = custom.value("format", json());
    const json type = format.is_object() ? format.value("type", json()) : json();
    if (format.is_null() || type == "text") return true;
    const bool nested = spelling_ == ToolSpelling::openai_chat;
    const json grammar = !nested             ? format
                         : type == "grammar" ? format.value("grammar", json())
                                             : "";
    const json syntax = grammar.is_object() ? grammar.value("syntax", json()) : json();
    const json definition = grammar.is_object() ? grammar.value("definition", json()) : json();
    const bool known = type == "grammar" && (syntax == "lark" || syntax == "regex");
    if (!known || !definition.is_string() || definition.get_ref<const std::string&>().empty()) {
      reader_.note(at + ".format", "one_of(text, grammar)",
                   "must be text, or a grammar with the syntax lark or regex and a definition",
                   &format);
      return false;
    }
    form.syntax = syntax.get<std::string>();
    form.definition = definition.get<std::string>();
    return true;
  }

  // Agents also offer tools that OpenAI's own servers run. As with llama-server, the prompt shows
  // the model only the functions.
  bool is_left_out(const json& type) const {
    return spelling_ == ToolSpelling::openai_responses && type.is_string() && type != "function";
  }

  void read_function(const json& entry, const ordered_json& ordered, const std::string& at) {
    const bool anthropic = spelling_ == ToolSpelling::anthropic ||
                           (entry.contains("input_schema") && !entry.contains("parameters"));
    const char* schema = anthropic ? "input_schema" : "parameters";
    const json name = entry.value("name", json());
    if (!name.is_string() || !is_name(name.get_ref<const std::string&>())) {
      return reader_.note(at + ".name", cat("max_length(", kMaxName, ")"),
                          cat("must be 1 to ", kMaxName, " letters, digits, _, - and ."), &name);
    }
    const json description = entry.value("description", json());
    const json strict = entry.value("strict", json());
    if (!description.is_null() && !description.is_string()) {
      return reader_.note(at + ".description", "type(string)", "must be a string", &description);
    }
    if (!strict.is_null() && !strict.is_boolean()) {
      return reader_.note(at + ".strict", "type(boolean)", "must be true or false", &strict);
    }
    // A chat's tool may have both fields; the first one counts.
    for (const char* each : {schema, "input_schema"}) {
      const json value = entry.value(each, json());
      if (!value.is_null() && !value.is_object()) {
        return reader_.note(cat(at, ".", each), "type(object)", "must be a JSON schema", &value);
      }
    }
    const json parameters = entry.value(schema, json());
    const bool twice =
        std::ranges::count(chat_.tools, name.get<std::string>(), &SentTool::name) > 0;
    if (twice) return reader_.note(at + ".name", "unique", "is the name of two tools", &name);
    ordered_json function;
    function["name"] = name;
    if (description.is_string()) function["description"] = ordered.at("description");
    if (parameters.is_object()) function["parameters"] = ordered.at(schema);
    chat_.tools.push_back(
        {.name = name.get<std::string>(),
         .json = release_integers(dump({{"type", "function"}, {"function", function}})),
         .parameters = parameters.is_object() ? release_integers(dump(ordered.at(schema))) : "",
         .strict = strict == true});
  }

  void read_choice() {
    const json* choice = reader_.find("tool_choice");
    if (choice == nullptr) return;
    const std::string kind = choice->is_string() ? choice->get<std::string>()
                             : choice->is_object() && choice->value("type", json()).is_string()
                                 ? choice->at("type").get<std::string>()
                                 : "";
    const bool anthropic = spelling_ == ToolSpelling::anthropic;
    if (anthropic && choice->is_object()) read_one_call(*choice);
    const bool plain = !anthropic || choice->is_object();
    if (plain && kind == "none") {
      chat_.tool_choice = "none";
    } else if (plain && (kind == "any" || (kind == "required" && !anthropic))) {
      chat_.tool_choice = "required";
    } else if (choice->is_object() && (kind == "tool" || (kind == "function" && !anthropic) ||
                                       (kind == "custom" && names_custom(*choice)))) {
      chat_.tool_choice = "required";
      chat_.tool = named(*choice);
    } else if (!anthropic && choice->is_object() && kind == "allowed_tools") {
      read_allowed(*choice);
    } else if (!plain || kind != "auto") {
      reader_.note("tool_choice", "one_of(none, auto, required)",
                   anthropic ? "must have the type none, auto, any or tool"
                             : "must be none, auto, required, any, a function or allowed_tools",
                   choice);
    }
    check_choice(*choice);
  }

  // The tools that may be called; the prompt shows no others.
  void read_allowed(const json& choice) {
    const bool nested = spelling_ == ToolSpelling::openai_chat;
    const json allowed = nested ? choice.value("allowed_tools", json()) : choice;
    const json mode = allowed.is_object() ? allowed.value("mode", json()) : json();
    const json list = allowed.is_object() ? allowed.value("tools", json()) : json();
    if ((mode != "auto" && mode != "required") || !list.is_array()) {
      return reader_.note("tool_choice", "one_of(auto, required)",
                          "must have the mode auto or required, and tools", &choice);
    }
    std::vector<std::string> names;
    for (const json& tool : list) {
      const json type = tool.is_object() ? tool.value("type", json()) : json();
      const bool custom = type == "custom" && names_custom(tool);
      if (!custom && is_left_out(type)) continue;
      names.push_back(custom || type == "function" ? named(tool) : "");
      if (std::ranges::count(chat_.tools, names.back(), &SentTool::name) > 0) continue;
      return reader_.note("tool_choice", "one_of(tools)", "allows a tool that is not in tools",
                          &choice);
    }
    std::erase_if(chat_.tools,
                  [&](const SentTool& tool) { return std::ranges::count(names, tool.name) == 0; });
    if (mode == "required") chat_.tool_choice = "required";
  }

  void read_one_call(const json& choice) {
    const json one = choice.value("disable_parallel_tool_use", json());
    if (one.is_null()) return;
    if (!one.is_boolean()) {
      return reader_.note("tool_choice.disable_parallel_tool_use", "type(boolean)",
                          "must be true or false", &one);
    }
    chat_.parallel_tool_calls = !one.get<bool>();
  }

  bool names_custom(const json& tool) const {
    const bool nested = spelling_ == ToolSpelling::openai_chat;
    const json holder = nested ? tool.value("custom", json()) : tool;
    const json name = holder.is_object() ? holder.value("name", json()) : json();
    return std::ranges::any_of(chat_.tools,
                               [&](const SentTool& one) { return one.custom && name == one.name; });
  }

  std::string named(const json& choice) {
    const char* const kind = choice.value("type", json()) == "custom" ? "custom" : "function";
    const json holder = choice.value(kind, choice);
    const json name = holder.is_object() ? holder.value("name", json()) : json();
    if (name.is_string() && !name.get_ref<const std::string&>().empty()) {
      return name.get<std::string>();
    }
    reader_.note("tool_choice", "required", "must name a function", &choice);
    return {};
  }

  void check_choice(const json& choice) {
    if (chat_.tool_choice != "required") return;
    if (chat_.tools.empty()) {
      reader_.note("tool_choice", "requires(tools)", "needs tools", &choice);
    } else if (!chat_.tool.empty() &&
               std::ranges::count(chat_.tools, chat_.tool, &SentTool::name) == 0) {
      reader_.note("tool_choice", "one_of(tools)", "names a function that is not in tools",
                   &choice);
    }
  }

  ObjectReader& reader_;
  const JsonBody& body_;
  const ToolSpelling spelling_;
  ChatFields& chat_;
};

}  // namespace

void read_tools(ObjectReader& reader, const JsonBody& body, ToolSpelling spelling,
                ChatFields& chat) {
  Tools(reader, body, spelling, chat).read();
}

std::string custom_arguments(const std::string& input) {
  return dump({{"input", input}});
}

std::string custom_input(const std::string& arguments) {
  const json parsed = json::parse(arguments, nullptr, false);
  const json input = parsed.is_object() ? parsed.value("input", json()) : json();
  return input.is_string() ? input.get<std::string>() : arguments;
}

namespace {

// A message's "function_call", in OpenAI's older form.
SentCall read_older_call(const json& value, ObjectReader& message, std::vector<FieldError>& errors,
                         const std::string& prefix) {
  if (!value.is_object()) {
    message.note("function_call", "type(object)", "must be an object", &value);
    return {};
  }
  ObjectReader call(value, cat(prefix, "function_call."), errors);
  if (call.find("name") == nullptr) call.note("name", "required", "is missing", nullptr);
  return {.id = "",
          .name = call.text("name").value_or(""),
          .arguments = call.text("arguments").value_or("{}")};
}

}  // namespace

std::vector<SentCall> read_tool_calls(ObjectReader& message, std::vector<FieldError>& errors,
                                      const std::string& prefix) {
  std::vector<SentCall> out;
  const json* list = message.find("tool_calls");
  const json* older = message.find("function_call");
  if (older != nullptr && list != nullptr) {
    message.note("function_call", "exclusive(tool_calls)",
                 "cannot be given together with tool_calls", nullptr);
  } else if (older != nullptr) {
    out.push_back(read_older_call(*older, message, errors, prefix));
  }
  if (list == nullptr) return out;
  if (!list->is_array()) {
    message.note("tool_calls", "type(array)", "must be an array of calls", list);
    return out;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    const std::string at = cat("tool_calls[", i, "]");
    const json type = entry.is_object() ? entry.value("type", json()) : json();
    const bool custom = type == "custom";
    const char* const kind = custom ? "custom" : "function";
    if (!type.is_null() && type != kind) {
      message.note(cat(at, ".type"), "one_of(function, custom)", "must be function or custom",
                   &entry["type"]);
      continue;
    }
    if (!entry.is_object() || !entry.contains(kind) || !entry[kind].is_object()) {
      message.note(at, "type(object)", "must be an object with a function or a custom tool's call",
                   &entry);
      continue;
    }
    ObjectReader call(entry, cat(prefix, at, "."), errors);
    ObjectReader function(entry[kind], cat(prefix, at, ".", kind, "."), errors);
    if (function.find("name") == nullptr) function.note("name", "required", "is missing", nullptr);
    out.push_back({.id = call.text("id").value_or(""),
                   .name = function.text("name").value_or(""),
                   .arguments = custom ? custom_arguments(function.text("input").value_or(""))
                                       : function.text("arguments").value_or("{}")});
  }
  return out;
}

}  // namespace rbee::server
