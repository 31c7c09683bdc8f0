#include "rbee/engine/text/form/xml_arguments.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/wide_integers.h"
#include "rbee/engine/text/form/constraint.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using grammar::ExprPtr;
using Json = nlohmann::ordered_json;

// None of the places at which the reader of such calls takes a value to be over.
std::string text_pattern(const text::XmlForm& form) {
  const std::string close = form.close.empty() ? "" : cat("|", form.close);
  return cat("(?!", form.parameter, ")(?:(?!", form.value_end, R"(\s*(?:)", form.parameter, "|",
             form.function_end, close, ")|", form.function_end, R"(\s*(?:)", form.function, close,
             R"()|\n)", form.parameter, R"()(?:.|\n))*)");
}

// What follows a value.
ExprPtr end_of_value(const XmlMarks& marks) {
  return grammar::sequence({grammar::literal(std::string(marks.form.gap)),
                            marks.mark(marks.form.value_end), grammar::literal("\n")});
}

bool is_text(const Json& schema) {
  return schema.is_object() && schema.value("type", Json()) == "string";
}

// The value with its end, and what follows.
ExprPtr value(grammar::Grammar& into, const XmlMarks& marks, const Tool& tool, const Json& schema,
              const ExprPtr& text, ExprPtr after) {
  if (tool.input.kind != Constraint::Kind::none) {
    ExprPtr input = grammar::embed(into, to_grammar(tool.input));
    return grammar::sequence({std::move(input), end_of_value(marks), std::move(after)});
  }
  if (is_text(schema) && schema.contains("enum") && schema["enum"].is_array()) {
    std::vector<ExprPtr> ways;
    for (const Json& one : schema["enum"]) {
      if (one.is_string()) ways.push_back(grammar::literal(one.get<std::string>()));
    }
    return grammar::sequence(
        {grammar::choice(std::move(ways)), end_of_value(marks), std::move(after)});
  }
  if (!is_text(schema)) {
    try {
      ExprPtr json =
          grammar::embed(into, grammar::parse_json_schema(release_integers(schema.dump())));
      return grammar::sequence({std::move(json), end_of_value(marks), std::move(after)});
    } catch (const Error&) {
      if (tool.strict) throw;
    }
  }
  return grammar::sequence({text, std::move(after)});
}

}  // namespace

ExprPtr xml_text(grammar::Grammar& into, const XmlMarks& marks) {
  into.rules.push_back({"text of a parameter",
                        grammar::sequence({grammar::parse_regex("tools", text_pattern(marks.form)),
                                           end_of_value(marks)})});
  return grammar::rule(static_cast<int32_t>(into.rules.size()) - 1);
}

ExprPtr xml_arguments(grammar::Grammar& into, const XmlMarks& marks, const Tool& tool,
                      const ExprPtr& text) {
  const Json schema =
      Json::parse(hold_numbers(tool.parameters.empty() ? "{}" : tool.parameters), nullptr, false);
  check(schema.is_object(), "tools", "the parameters of ", tool.name, " are no JSON object");
  const Json properties = schema.value("properties", Json::object());
  check(properties.is_object(), "tools", "the properties of ", tool.name, " are no JSON object");
  const Json required = schema.value("required", Json::array());
  std::vector<std::pair<std::string, Json>> all;
  for (const auto& [key, one] : properties.items()) all.emplace_back(key, one);
  const text::XmlForm& form = marks.form;
  const auto plain = [](std::string_view bytes) { return grammar::literal(std::string(bytes)); };
  ExprPtr rest = marks.mark(form.function_end);
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    const auto tail = static_cast<int32_t>(into.rules.size());
    into.rules.push_back({tool.name, std::move(rest)});
    std::vector<ExprPtr> parts = {marks.mark(form.parameter), plain(at->first),
                                  marks.mark(form.key_end)};
    if (!form.value.empty()) parts.insert(parts.end(), {plain("\n"), marks.mark(form.value)});
    parts.push_back(plain(form.gap));
    parts.push_back(value(into, marks, tool, at->second, text, grammar::rule(tail)));
    rest = grammar::sequence(std::move(parts));
    const bool must = std::ranges::count(required, Json(at->first)) > 0;
    if (!must) rest = grammar::choice({std::move(rest), grammar::rule(tail)});
  }
  return rest;
}

}  // namespace rbee::engine
