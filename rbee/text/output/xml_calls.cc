// Calls such as Qwen3-Coder's: <function=name> with <parameter=key> value </parameter> inside,
// mostly between <tool_call> and </tool_call>; other models have other marks (xml_form.h).

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "rbee/text/output/python_literals.h"
#include "rbee/text/output/scan.h"
#include "rbee/text/output/stage.h"
#include "rbee/text/output/xml_form.h"

namespace rbee::text {
namespace {

using nlohmann::json;

constexpr size_t kMaxName = 256;

class XmlStage final : public Stage {
 public:
  XmlStage(const XmlForm& form, std::vector<OutputFunction> functions)
      : form_(form),
        outside_{form.function, form.open.empty() ? form.function_end : form.close},
        inside_{form.parameter, form.function_end},
        value_ends_{form.value_end, form.function_end, form.parameter},
        behind_value_{form.parameter, form.function_end},
        behind_function_{form.function},
        functions_(std::move(functions)) {
    if (form.open.empty()) return;
    outside_.push_back(form.open);
    inside_.push_back(form.close);
    behind_value_.push_back(form.close);
    behind_function_.push_back(form.close);
  }

  bool read(std::string_view& text, bool last, Output& out) override {
    while (step(text, last, out)) {
    }
    return false;
  }

 private:
  enum class At : uint8_t { content, name, between, key, value, behind };

  bool step(std::string_view& text, bool last, Output& out) {
    switch (at_) {
      case At::content: {
        const auto mark = emit_until(text, outside_, last, &Output::content, out);
        if (mark == kFunction) at_ = At::name;
        if (mark == kClose) at_ = At::behind;
        return mark.has_value();
      }
      case At::name:
        return read_name(text, last, out);
      case At::between:
        return read_between(text, last, out);
      case At::key:
        return read_key(text, last);
      case At::value:
        return read_value(text, last, out);
      case At::behind:
        text.remove_prefix(leading_space(text));
        if (!text.empty()) at_ = At::content;
        return !text.empty();
    }
    return false;
  }

  static std::optional<std::string> until(std::string_view mark, std::string_view& text) {
    const size_t end = text.find(mark);
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(text.substr(0, end));
    text.remove_prefix(end + mark.size());
    return out;
  }

  // One that does not end soon is content.
  std::optional<std::string> take_name(std::string_view& text) const {
    if (!form_.name_end.empty()) return until(form_.name_end, text);
    const std::array<std::string_view, 3> ends{"\n", form_.parameter, form_.function_end};
    const FoundMarker found = find_first(text, ends);
    if (found.at == std::string_view::npos) return std::nullopt;
    std::string_view name = text.substr(0, found.at);
    text.remove_prefix(found.at);
    name.remove_prefix(leading_space(name));
    return std::string(name.substr(0, name.size() - trailing_space(name)));
  }

  bool read_name(std::string_view& text, bool last, Output& out) {
    if (form_.name_end.empty()) text.remove_prefix(leading_space(text));
    const std::string_view before = text;
    const auto name = take_name(text);
    if (!name && !last && text.size() <= kMaxName) return false;
    const bool odd = name && form_.name_end.empty() && name->find_first_of("{ ") != name->npos;
    if (!name || odd) {
      text = before;
      at_ = At::content;
      return true;
    }
    out.begin_call(*name);
    const auto known = std::ranges::find(functions_, *name, &OutputFunction::name);
    const json schema =
        known == functions_.end() ? json() : json::parse(known->parameters, nullptr, false);
    properties_ = json::object();
    if (schema.is_object() && schema.contains("properties")) properties_ = schema["properties"];
    first_ = true;
    given_.clear();
    at_ = At::between;
    return true;
  }

  bool read_between(std::string_view& text, bool last, Output& out) {
    const FoundMarker found = find_first(text, inside_);
    if (found.at == std::string_view::npos) {
      text.remove_prefix(last ? text.size() : text.size() - open_tail(text, inside_));
      return false;
    }
    text.remove_prefix(found.at + inside_[found.which].size());
    at_ = found.which == kParameter ? At::key : At::behind;
    if (at_ == At::behind) {
      out.arguments(first_ ? "{}" : "}");
      out.end_call();
    }
    return true;
  }

  bool read_key(std::string_view& text, bool last) {
    std::string_view rest = text;
    auto key = until(form_.key_end, rest);
    if (key && !form_.value.empty()) {
      rest.remove_prefix(leading_space(rest));
      const Begins begins = begins_with(rest, form_.value);
      if (begins == Begins::yes) rest.remove_prefix(form_.value.size());
      if (begins == Begins::unknown && !last) return false;
    }
    if (!key) {
      if (last) text = {};
      return false;
    }
    text = rest;
    key_ = *std::move(key);
    given_.insert(key_);
    at_ = At::value;
    return true;
  }

  // The end of a value, and the start of what follows it.
  struct End {
    size_t at, next;
  };
  enum class Search : uint8_t { found, not_yet, none };

  // A value may contain marks, too, as in a text about such calls. It ends at its end mark if
  // another mark follows that; and, since models forget end marks, at the function's end
  // if the call ends or another begins, and at a line that begins with another parameter.
  Search find_end(std::string_view text, bool last, End& end) {
    size_t from = searched_;
    while (true) {
      const FoundMarker found = find_first(text.substr(from), value_ends_);
      if (found.at == std::string_view::npos) {
        searched_ = text.size() - open_tail(text, value_ends_);
        return Search::none;
      }
      const size_t at = from + found.at, behind = at + value_ends_[found.which].size();
      const std::string_view rest = text.substr(behind);
      const Begins ends = found.which == kNext  ? names_next(text.substr(0, at), rest)
                          : found.which == kEnd ? any_behind(rest, behind_value_)
                                                : any_behind(rest, behind_function_);
      searched_ = at;
      if (ends == Begins::unknown && !last) return Search::not_yet;
      if (ends == Begins::yes || (ends == Begins::unknown && found.which != kNext)) {
        end = {at, found.which == kEnd ? behind : at};
        return Search::found;
      }
      from = behind;
    }
  }

  // Whether one of the marks follows, perhaps after blanks.
  static Begins any_behind(std::string_view text, std::span<const std::string_view> marks) {
    text.remove_prefix(leading_space(text));
    Begins out = Begins::no;
    for (const std::string_view mark : marks) {
      const Begins begins = begins_with(text, mark);
      if (begins == Begins::yes) return begins;
      if (begins == Begins::unknown) out = begins;
    }
    return out;
  }

  // Whether `rest` begins with a parameter's name that may come, at the beginning of a line.
  Begins names_next(std::string_view before, std::string_view rest) const {
    if (!before.empty() && before.back() != '\n') return Begins::no;
    const auto key = until(form_.key_end, rest);
    if (!key) return rest.size() > kMaxName ? Begins::no : Begins::unknown;
    const bool known =
        !properties_.is_object() || properties_.empty() || properties_.contains(*key);
    return known && !given_.contains(*key) ? Begins::yes : Begins::no;
  }

  // A value goes out as a whole: only then its type is known. At the end of the answer any mark
  // ends it, and one without is cut off.
  bool read_value(std::string_view& text, bool last, Output& out) {
    End end{};
    if (const Search search = find_end(text, last, end); search != Search::found) {
      if (!last) return false;
      const FoundMarker found = find_first(text, value_ends_);
      if (found.at == std::string_view::npos) {
        text = {};
        return false;
      }
      end = {found.at, found.at + (found.which == kEnd ? form_.value_end.size() : 0)};
    }
    std::string_view value = text.substr(0, end.at);
    if (value.starts_with(form_.gap)) value.remove_prefix(form_.gap.size());
    if (value.ends_with(form_.gap)) value.remove_suffix(form_.gap.size());
    out.arguments(first_ ? "{" : ", ");
    out.arguments(json(key_).dump(-1, ' ', false, json::error_handler_t::replace));
    out.arguments(": ");
    out.arguments(value_json(value));
    first_ = false;
    text.remove_prefix(end.next);
    searched_ = 0;
    at_ = At::between;
    return true;
  }

  // By the schema's type; if it has none, JSON that is no string stays JSON.
  std::string value_json(std::string_view text) const {
    const auto known = properties_.is_object() ? properties_.find(key_) : properties_.end();
    const bool typed = properties_.is_object() && known != properties_.end() && known->is_object();
    const bool string = typed && known->value("type", json()) == "string";
    if (!string && json::accept(text)) return std::string(text);
    const bool other = typed && !string && known->contains("type");
    const std::string from_python = other ? json_of_python(text) : "";
    return json::accept(from_python)
               ? from_python
               : json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  }

  // Places in the lists of marks.
  static constexpr size_t kFunction = 0, kClose = 1;
  static constexpr size_t kParameter = 0;
  static constexpr size_t kEnd = 0, kNext = 2;
  const XmlForm& form_;
  std::vector<std::string_view> outside_, inside_, value_ends_, behind_value_, behind_function_;
  const std::vector<OutputFunction> functions_;
  At at_ = At::content;
  json properties_ = json::object();
  std::string key_;
  std::set<std::string> given_;  // keys of this call
  size_t searched_ = 0;          // of a value, bytes in which it does not end
  bool first_ = true;
};

}  // namespace

std::unique_ptr<Stage> xml_stage(const XmlForm& form, std::vector<OutputFunction> functions) {
  return std::make_unique<XmlStage>(form, std::move(functions));
}

}  // namespace rbee::text
