#include "rbee/engine/text/form/answer_grammar.h"

#include <algorithm>
#include <array>

#include "rbee/core/error.h"
#include "rbee/core/wide_integers.h"
#include "rbee/engine/text/form/constraint.h"
#include "rbee/engine/text/form/xml_arguments.h"
#include "rbee/engine/text/prompt/chat_prompt.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using grammar::ExprPtr;
using grammar::MarkerOr;
using text::ReasoningFormat;
using text::ToolFormat;

using Json = nlohmann::ordered_json;

// For a function without parameters in the request: it has none.
constexpr std::string_view kNoParameters =
    R"({"type":"object","properties":{},"additionalProperties":false})";

// Whether the schema has properties by name, but names none, as agents write that a function has no
// parameters.
bool names_none(const Json& schema) {
  const Json properties = schema.value("properties", Json());
  constexpr std::array kMore{"additionalProperties",
                             "patternProperties",
                             "minProperties",
                             "propertyNames",
                             "required",
                             "anyOf",
                             "oneOf",
                             "allOf",
                             "$ref"};
  return properties.is_object() && properties.empty() &&
         std::ranges::none_of(kMore, [&](const char* key) {
           return schema.contains(key) && !(schema[key].is_array() && schema[key].empty());
         });
}

// Arguments are an object, also where the schema names no type, or others too.
grammar::Grammar parameters_grammar(const Tool& tool) {
  Json schema = Json::parse(hold_numbers(tool.parameters.empty() ? kNoParameters : tool.parameters),
                            nullptr, false);
  check(schema.is_object(), "tools", "the parameters of ", tool.name, " are no JSON object");
  constexpr std::array kSay{"properties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"};
  const bool says =
      std::ranges::any_of(kSay, [&](const char* key) { return schema.contains(key); });
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    check(std::ranges::count(types, Json("object")) > 0, "tools", "the parameters of ", tool.name,
          " are of another type than object");
  }
  if (schema.contains("type") || !says) schema["type"] = "object";
  if (names_none(schema)) schema["additionalProperties"] = false;
  return grammar::parse_json_schema(release_integers(schema.dump()));
}

class Builder {
 public:
  Builder(const AnswerForm& form, const std::function<bool(std::string_view)>& is_special,
          const grammar::TokenReader& tokens)
      : form_(form), is_special_(is_special), tokens_(tokens) {}

  grammar::Grammar build() {
    const bool harmony = form_.format.reasoning == ReasoningFormat::harmony ||
                         form_.format.tools == ToolFormat::harmony;
    ExprPtr root = harmony ? harmony_answer() : with_reasoning(answer());
    out_.root = static_cast<int32_t>(out_.rules.size());
    out_.rules.push_back({"answer", std::move(root)});
    return std::move(out_);
  }

 private:
  static ExprPtr text(std::string_view bytes) { return grammar::literal(std::string(bytes)); }
  static ExprPtr any_text() {
    return grammar::repeat(grammar::chars_except({}), 0, grammar::kUnlimited);
  }

  ExprPtr mark(std::string_view name) const {
    return text(is_special_(name) ? kSpecialByte + std::string(name) : std::string(name));
  }

  // Any text, then the mark and `after`.
  ExprPtr until(std::string_view name, ExprPtr after, MarkerOr or_what = MarkerOr::nothing) {
    if (!is_special_(name)) {
      return grammar::text_until(out_, name, std::move(after), or_what);
    }
    ExprPtr rest = grammar::sequence({mark(name), std::move(after)});
    if (or_what == MarkerOr::end) rest = grammar::optional(std::move(rest));
    return grammar::sequence({any_text(), std::move(rest)});
  }

  ExprPtr with_reasoning(ExprPtr body) {
    const auto marks = text::marks_of(form_.format.reasoning);
    if (!marks || form_.reasoning == AnswerForm::Reasoning::none) return body;
    const int32_t answer = add("answer behind reasoning", std::move(body));
    ExprPtr behind = grammar::sequence({grammar::repeat(text("\n"), 0, 2), grammar::rule(answer)});
    ExprPtr thoughts = until(marks->close, std::move(behind));
    if (form_.reasoning == AnswerForm::Reasoning::is_open) return thoughts;
    return grammar::choice(
        {grammar::sequence({mark(marks->open), std::move(thoughts)}), grammar::rule(answer)});
  }

  ExprPtr answer() {
    if (form_.tools.empty()) return content();
    if (form_.call_required) return calls();
    if (form_.constraint.kind != Constraint::Kind::none) {
      return grammar::choice({content(), calls()});
    }
    return content_or_calls();
  }

  ExprPtr content() { return grammar::embed(out_, to_grammar(form_.constraint, {}, tokens_)); }

  // Any text, and perhaps calls after it.
  ExprPtr content_or_calls() {
    if (is_bare()) {
      const std::vector<grammar::CharRange> not_first = {
          {'{', '{'}, {' ', ' '}, {'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}};
      ExprPtr plain = grammar::sequence({grammar::chars_except(not_first), any_text()});
      return grammar::choice({calls(), grammar::optional(std::move(plain))});
    }
    return until(call_mark(), after_call_mark(), MarkerOr::end);
  }

  // Calls have no mark: an answer that begins like an object is one.
  bool is_bare() const {
    return form_.format.tools == ToolFormat::llama3 || form_.format.tools == ToolFormat::generic;
  }

  ExprPtr calls() {
    if (form_.format.tools == ToolFormat::generic) {
      return grammar::sequence(
          {generic_call(), more([&] { return grammar::sequence({text("\n"), generic_call()}); })});
    }
    if (form_.format.tools == ToolFormat::llama3) {
      return grammar::sequence({grammar::optional(mark("<|python_tag|>")), llama_call(), more([&] {
                                  return grammar::sequence({text("; "), llama_call()});
                                })});
    }
    return grammar::sequence({mark(call_mark()), after_call_mark()});
  }

  // The beginning that all calls share.
  std::string_view call_mark() const {
    switch (form_.format.tools) {
      case ToolFormat::mistral:
      case ToolFormat::mistral_named:
        return "[TOOL_CALLS]";
      case ToolFormat::deepseek_v3:
      case ToolFormat::deepseek_v31:
      case ToolFormat::kimi_k2:
        return text::framed_marks(form_.format.tools).calls_begin;
      default:
        break;
    }
    const text::XmlForm* form = text::xml_form(form_.format.tools);
    if (form == nullptr) return "<tool_call>";
    return form->open.empty() ? form->function : form->open;
  }

  ExprPtr after_call_mark() {
    switch (form_.format.tools) {
      case ToolFormat::mistral:
        return grammar::sequence(
            {text("["), mistral_call(),
             more([&] { return grammar::sequence({text(", "), mistral_call()}); }), text("]")});
      case ToolFormat::mistral_named:
        return with_more(named_call(), "");
      case ToolFormat::deepseek_v3:
      case ToolFormat::deepseek_v31:
      case ToolFormat::kimi_k2: {
        const bool gap = form_.format.tools == ToolFormat::deepseek_v3;
        return grammar::sequence(
            {framed_call(),
             more([&] { return grammar::sequence({text(gap ? "\n" : ""), framed_call()}); }),
             mark(text::framed_marks(form_.format.tools).calls_end)});
      }
      case ToolFormat::qwen3_coder:
      case ToolFormat::seed_oss:
      case ToolFormat::minimax_m2:
      case ToolFormat::glm45:
        return with_more(xml_call(), "\n");
      default:
        return with_more(hermes_call(), "\n");
    }
  }

  // The call, and perhaps others with the mark in front.
  ExprPtr with_more(ExprPtr call, std::string_view gap) {
    const int32_t one = add("call", std::move(call));
    return grammar::sequence({grammar::rule(one), more([&] {
                                return grammar::sequence(
                                    {text(gap), mark(call_mark()), grammar::rule(one)});
                              })});
  }

  template <typename Make>
  ExprPtr more(Make make) {
    if (!form_.parallel_calls) return grammar::sequence({});
    return grammar::repeat(make(), 0, grammar::kUnlimited);
  }

  // `make` with each tool and its arguments.
  template <typename Make>
  ExprPtr each_tool(Make make) {
    std::vector<ExprPtr> ways;
    for (size_t i = 0; i < form_.tools.size(); ++i)
      ways.push_back(make(form_.tools[i], arguments(i)));
    return grammar::choice(std::move(ways));
  }

  ExprPtr hermes_call() {
    return grammar::sequence(
        {text("\n"), json_call("\", \"arguments\": "), text("\n"), mark("</tool_call>")});
  }
  ExprPtr llama_call() { return json_call("\", \"parameters\": "); }
  ExprPtr generic_call() { return json_call("\", \"arguments\": "); }
  ExprPtr mistral_call() { return json_call("\", \"arguments\": "); }
  ExprPtr json_call(const char* between) {
    return each_tool([&](const Tool& tool, ExprPtr arguments) {
      return grammar::sequence(
          {text(cat("{\"name\": \"", tool.name, between)), std::move(arguments), text("}")});
    });
  }
  ExprPtr named_call() {
    return each_tool([&](const Tool& tool, ExprPtr arguments) {
      return grammar::sequence({text(tool.name), mark("[ARGS]"), std::move(arguments)});
    });
  }
  ExprPtr framed_call() {
    const bool block = form_.format.tools == ToolFormat::deepseek_v3;
    const text::FramedMarks& marks = text::framed_marks(form_.format.tools);
    return each_tool([&](const Tool& tool, ExprPtr arguments) {
      ExprPtr name = text(block ? "function" : tool.name);
      if (form_.format.tools == ToolFormat::kimi_k2) {
        name = grammar::sequence(
            {text(cat("functions.", tool.name, ":")), grammar::parse_regex("tools", "[0-9]{1,3}")});
      }
      return grammar::sequence({mark(marks.call_begin), std::move(name), mark(marks.separator),
                                text(block ? tool.name + "\n```json\n" : ""), std::move(arguments),
                                text(block ? "\n```" : ""), mark(marks.call_end)});
    });
  }
  ExprPtr xml_call() {
    const XmlMarks marks{.form = *text::xml_form(form_.format.tools),
                         .mark = [this](std::string_view name) { return mark(name); }};
    const text::XmlForm& form = marks.form;
    const ExprPtr any = xml_text(out_, marks);
    std::vector<ExprPtr> ways;
    for (const Tool& tool : form_.tools) {
      // The mark in front of the call is written already.
      const std::string begin = form.open.empty() ? "" : cat("\n", form.function);
      std::vector<ExprPtr> parts = {text(cat(begin, tool.name, form.name_end, "\n")),
                                    xml_arguments(out_, marks, tool, any)};
      if (!form.open.empty()) parts.insert(parts.end(), {text("\n"), mark(form.close)});
      ways.push_back(grammar::sequence(std::move(parts)));
    }
    return grammar::choice(std::move(ways));
  }

  // Reasoning, then a message to the user or a call, which ends the turn.
  ExprPtr harmony_answer() {
    const ExprPtr next = grammar::sequence({mark("<|end|>"), mark("<|start|>"), text("assistant")});
    const auto message = [&](std::string_view header) {
      return grammar::sequence({mark("<|channel|>"), text(header), mark("<|message|>")});
    };
    std::vector<ExprPtr> ways;
    if (!form_.tools.empty()) {
      ways.push_back(each_tool([&](const Tool& tool, ExprPtr arguments) {
        return grammar::sequence(
            {mark("<|channel|>"), text(cat("commentary to=functions.", tool.name, " ")),
             mark("<|constrain|>"), text("json"), mark("<|message|>"), std::move(arguments)});
      }));
    }
    if (!form_.call_required) {
      const bool free = form_.constraint.kind == Constraint::Kind::none;
      ways.push_back(grammar::sequence({message("final"), free ? any_text() : content()}));
    }
    const auto aside = [&](std::string_view channel) {
      return grammar::optional(grammar::sequence({message(channel), any_text(), next}));
    };
    ExprPtr reasoning =
        form_.reasoning == AnswerForm::Reasoning::none ? grammar::sequence({}) : aside("analysis");
    return grammar::sequence(
        {std::move(reasoning), aside("commentary"), grammar::choice(std::move(ways))});
  }

  // By the schema where it has to be followed, or where a call is forced and it can be; else any
  // object.
  ExprPtr arguments(size_t index) {
    const Tool& tool = form_.tools[index];
    arguments_.resize(form_.tools.size(), -1);
    if (arguments_[index] < 0) arguments_[index] = add(tool.name, arguments_body(tool));
    return grammar::rule(arguments_[index]);
  }
  ExprPtr arguments_body(const Tool& tool) {
    if (tool.input.kind != Constraint::Kind::none) {
      ExprPtr input = grammar::embed(out_, to_grammar(tool.input, grammar::json_string_chars));
      return grammar::sequence({text("{\"input\":"), grammar::optional(text(" ")), text("\""),
                                std::move(input), text("\"}")});
    }
    if (tool.strict) return grammar::embed(out_, parameters_grammar(tool));
    if (form_.call_required) {
      try {
        return grammar::embed(out_, parameters_grammar(tool));
      } catch (const Error&) {  // a schema of more than grammars hold is only a wish
      }
    }
    return grammar::embed(out_, grammar::json_object_grammar());
  }

  int32_t add(std::string name, ExprPtr body) {
    out_.rules.push_back({std::move(name), std::move(body)});
    return static_cast<int32_t>(out_.rules.size()) - 1;
  }

  const AnswerForm& form_;
  const std::function<bool(std::string_view)>& is_special_;
  const grammar::TokenReader& tokens_;
  grammar::Grammar out_;
  std::vector<int32_t> arguments_;  // rules by tool; -1: not made yet
};

}  // namespace

bool AnswerForm::binds() const {
  return constraint.kind != Constraint::Kind::none || call_required ||
         std::ranges::any_of(tools, [](const Tool& tool) {
           return tool.strict || tool.input.kind != Constraint::Kind::none;
         });
}

AnswerForm form_of(const TextRequest& request, const text::OutputFormat& format) {
  AnswerForm out{.constraint = request.constraint, .format = {}, .tools = {}};
  if (request.messages.empty() || !request.chat.split) return out;
  out.format = format;
  const ChatOptions& chat = request.chat;
  if (!chat.calls()) return out;
  if (format.tools == ToolFormat::none) {
    fail(Code::unsupported, "tools",
         "the worker was started with --tool-parser none: its model calls no functions");
  }
  out.call_required = chat.tool_choice == ToolChoice::required;
  out.parallel_calls = !chat.one_call();
  for (const Tool& tool : chat.tools) {
    if (chat.tool.empty() || chat.tool == tool.name) out.tools.push_back(tool);
  }
  return out;
}

AnswerForm::Reasoning reasoning_after(std::string_view prompt, const text::OutputFormat& format) {
  if (format.reasoning == ReasoningFormat::none) return AnswerForm::Reasoning::none;
  switch (end_of(prompt, format.reasoning)) {
    case PromptEnd::inside_reasoning:
      return AnswerForm::Reasoning::is_open;
    case PromptEnd::after_reasoning:
      return AnswerForm::Reasoning::none;
    case PromptEnd::plain:
      break;
  }
  return AnswerForm::Reasoning::may_come;
}

grammar::Grammar answer_grammar(const AnswerForm& form,
                                const std::function<bool(std::string_view)>& is_special,
                                const grammar::TokenReader& tokens) {
  return Builder(form, is_special, tokens).build();
}

}  // namespace rbee::engine
