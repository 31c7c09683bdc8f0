#include "rbee/text/output/loose_calls.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/text/output/python_literals.h"
#include "rbee/text/output/scan.h"

namespace rbee::text {
namespace {

using nlohmann::json;

constexpr size_t kMostHeld = 64 << 10;  // bytes; a longer value is no call
constexpr size_t kMostInfo = 40;        // of a fence's first line
constexpr size_t kMostName = 256;
constexpr std::string_view kFence = "```";
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOpeners{
    {{kFence, kFence}, {"<tools>", "</tools>"}, {"<tool_call>", "</tool_call>"}}};
constexpr std::array<std::string_view, 6> kMembers{"name",       "function", "arguments",
                                                   "parameters", "type",     "id"};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool has_type(const json& value, const json& type) {
  if (!type.is_string()) return true;
  const std::string& name = type.get_ref<const std::string&>();
  if (name == "integer") return value.is_number_integer();
  if (name == "array") return value.is_array();
  if (name == "object") return value.is_object();
  if (name == "boolean") return value.is_boolean();
  return name == "number" ? value.is_number() : name != "string" || value.is_string();
}

// Whether the schema's own conditions hold: the required names, the types, and no other names if
// it allows none. The caller judges nested values.
bool fits(const json& arguments, const std::string& parameters) {
  const json schema = json::parse(parameters, nullptr, false);
  if (!arguments.is_object() || !schema.is_object()) return arguments.is_object();
  for (const json& name : schema.value("required", json::array())) {
    if (!name.is_string() || !arguments.contains(name.get<std::string>())) return false;
  }
  const json properties = schema.value("properties", json::object());
  const bool others = schema.value("additionalProperties", json()) != false;
  return std::ranges::all_of(arguments.items(), [&](const auto& entry) {
    if (!properties.is_object() || !properties.contains(entry.key())) return others;
    const json& property = properties.at(entry.key());
    return !property.is_object() || has_type(entry.value(), property.value("type", json()));
  });
}

bool is_call(const json& value, const std::vector<OutputFunction>& functions) {
  if (!value.is_object()) return false;
  const json name = value.value("name", value.value("function", json()));
  json arguments = value.value("arguments", value.value("parameters", json()));
  if (!name.is_string()) return false;
  if (arguments.is_string()) {
    arguments = json::parse(arguments.get_ref<const std::string&>(), nullptr, false);
  }
  const auto known =
      std::ranges::find(functions, name.get_ref<const std::string&>(), &OutputFunction::name);
  return known != functions.end() && fits(arguments, known->parameters);
}

}  // namespace

LooseValue::Is LooseValue::next(char c, const std::vector<OutputFunction>& functions) {
  if (quote_ != 0) return inside(c);
  if (is_space(c)) return Is::open;
  if (c == '{' || c == '[') return begin(c);
  if (c == '}' || c == ']') {
    if (at_member() && end_member(functions) == Is::no_call) return Is::no_call;
    return --depth_ == 0 ? Is::whole : Is::open;
  }
  if (depth_ < level_ && c != ',') return Is::no_call;  // an array of something else
  if (c == '"' || c == '\'') {
    quote_ = c;
    if (at_member()) last_.clear();
    return Is::open;
  }
  if (!at_member()) return Is::open;
  if (c == ',') return end_member(functions);
  if (c == ':' && wants_key_) {
    wants_key_ = false;
    key_ = last_;
    return std::ranges::count(kMembers, key_) > 0 ? Is::open : Is::no_call;
  }
  return wants_key_ ? Is::no_call : Is::open;
}

LooseValue::Is LooseValue::inside(char c) {
  const bool ends = !escaped_ && c == quote_;
  escaped_ = !escaped_ && c == '\\';
  if (ends) {
    quote_ = 0;
  } else if (at_member() && last_.size() < kMostName) {
    last_ += c;
  }
  return Is::open;
}

LooseValue::Is LooseValue::begin(char c) {
  if (depth_ == 0) level_ = c == '[' ? 2 : 1;
  if (at_member() && wants_key_) return Is::no_call;
  ++depth_;
  if (!at_member()) return Is::open;
  wants_key_ = true;
  return c == '{' ? Is::open : Is::no_call;
}

LooseValue::Is LooseValue::end_member(const std::vector<OutputFunction>& functions) {
  const std::string key = std::exchange(key_, {});
  wants_key_ = true;
  const bool names = key == "name" || key == "function";
  return names && std::ranges::count(functions, last_, &OutputFunction::name) == 0 ? Is::no_call
                                                                                   : Is::open;
}

void LooseCalls::push(std::string_view text, Output& out) {
  for (const char c : text) take(c, out);
}

void LooseCalls::finish(Output& out) {
  out.plain(std::exchange(held_, {}));
}

void LooseCalls::take(char c, Output& out) {
  switch (at_) {
    case At::line:
    case At::text:
      return take_line(c, out);
    case At::opener:
    case At::info:
      return take_opener(c, out);
    case At::inside:
      return take_inside(c, out);
    case At::value:
      return take_value(c, out);
    case At::after:
      return take_after_calls(c, out);
    case At::skip:
      return take_skipped(c, out);
    case At::fence:
      return take_fence(c, out);
  }
}

// Holds blanks back: those in front of a call are no content.
void LooseCalls::take_line(char c, Output& out) {
  if (c == '\n') at_ = At::line;
  const bool may_begin = at_ == At::line && !over_;
  if (may_begin && (c == '{' || c == '[')) {
    closer_ = {};
    return begin_value(c, out);
  }
  if (may_begin && (c == '`' || c == '<')) {
    opener_ = held_.size();
    at_ = At::opener;
  }
  held_ += c;
  if (!is_space(c) && at_ != At::opener) give_up(At::text, out);
}

void LooseCalls::take_opener(char c, Output& out) {
  held_ += c;
  const std::string_view word = std::string_view(held_).substr(opener_);
  if (at_ == At::info) {
    if (c == '\n') {
      at_ = At::inside;
    } else if (c == '`') {
      give_up(At::text, out);  // a fence of more marks, or one within a line
    } else if (word.size() > kMostInfo) {
      give_up(At::fence, out);
    }
    return;
  }
  const auto opener = std::ranges::find_if(
      kOpeners, [&](const auto& entry) { return entry.first.starts_with(word); });
  if (opener == kOpeners.end()) return give_up(At::text, out);
  if (opener->first != word) return;
  closer_ = opener->second;
  at_ = closer_ == kFence ? At::info : At::inside;
}

void LooseCalls::take_inside(char c, Output& out) {
  if (c == '{' || c == '[') return begin_value(c, out);
  if (is_space(c)) {
    held_ += c;
  } else if (closer_ == kFence) {
    give_up(At::fence, out);
    take_fence(c, out);
  } else {
    held_ += c;
    give_up(At::text, out);
  }
}

void LooseCalls::begin_value(char c, Output& out) {
  value_ = held_.size();
  scan_ = {};
  at_ = At::value;
  take_value(c, out);
}

void LooseCalls::take_value(char c, Output& out) {
  held_ += c;
  const LooseValue::Is is = scan_.next(c, functions_);
  if (is == LooseValue::Is::open && held_.size() - value_ < kMostHeld) return;
  if (is != LooseValue::Is::whole || !emit_calls(out)) no_call(out);
}

// A part of a value that is no call is none either.
void LooseCalls::no_call(Output& out) {
  if (closer_ == kFence) {
    give_up(At::fence, out);
    line_.assign(1, '{');
    return;
  }
  skipped_ = {};
  JsonEnd::At end = JsonEnd::At::inside;
  for (const char c : std::string_view(held_).substr(value_)) end = skipped_.next(c);
  give_up(end == JsonEnd::At::inside ? At::skip : At::text, out);
}

bool LooseCalls::emit_calls(Output& out) {
  const std::string text = json_of_python(std::string_view(held_).substr(value_));
  const json value = json::parse(text, nullptr, false);
  const json list = value.is_array() ? value : json::array({value});
  const bool calls = !list.empty() && std::ranges::all_of(list, [&](const json& one) {
    return is_call(one, functions_);
  });
  if (!calls) return false;
  held_.clear();
  calling_ = true;
  std::string_view rest = text;
  for (size_t i = 0; i < (one_ ? 1 : list.size()); ++i) {
    rest.remove_prefix(rest.find('{'));  // text in front of an object is not kept
    CallReader reader(&functions_);
    (void)reader.read_all(rest, true, out);
  }
  calling_ = false;
  over_ = one_;
  at_ = At::after;
  return true;
}

// Blanks and separators between calls are no content.
void LooseCalls::take_after_calls(char c, Output& out) {
  const bool closes = held_.size() < closer_.size() && closer_[held_.size()] == c;
  if (closes) {
    held_ += c;
    if (held_ != closer_) return;
    held_.clear();
    closer_ = {};
  } else if (held_.empty() && (is_space(c) || c == ',' || c == ';')) {
    return;
  } else if (held_.empty() && !over_ && (c == '{' || c == '[')) {
    begin_value(c, out);
  } else {
    at_ = At::line;
    take_line(c, out);
  }
}

void LooseCalls::take_skipped(char c, Output& out) {
  if (skipped_.next(c) != JsonEnd::At::inside) at_ = At::text;
  held_ += c;
  out.plain(std::exchange(held_, {}));
}

// Up to a line that begins with the fence's mark.
void LooseCalls::take_fence(char c, Output& out) {
  if (c == '\n') {
    line_.clear();
  } else if (line_.size() <= kFence.size() && !(line_.empty() && is_space(c))) {
    line_ += c;
  }
  held_ += c;
  out.plain(std::exchange(held_, {}));
  if (line_ == kFence) at_ = At::text;
}

// The held text is content, except the blanks at its end.
void LooseCalls::give_up(At next, Output& out) {
  const size_t blanks = trailing_space(held_);
  out.plain(std::string_view(held_).substr(0, held_.size() - blanks));
  held_.erase(0, held_.size() - blanks);
  at_ = next == At::text && held_.find('\n') != held_.npos ? At::line : next;
  line_.clear();
}

}  // namespace rbee::text
