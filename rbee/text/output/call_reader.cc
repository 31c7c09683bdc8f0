#include "rbee/text/output/call_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rbee/text/output/python_literals.h"
#include "rbee/text/output/scan.h"

namespace rbee::text {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Members besides name and arguments that an unmarked call may have.
constexpr std::array<std::string_view, 2> kBeside{"type", "id"};

}  // namespace

std::optional<std::string> json_string(std::string_view json) {
  const auto value = nlohmann::json::parse(json_of_python(json), nullptr, false);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

JsonEnd::At JsonEnd::next(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == quote_) {
      in_string_ = false;
      if (depth_ == 0) return At::last;
    }
    return At::inside;
  }
  const bool closes = c == '}' || c == ']';
  if (depth_ == 0 && (closes || (begun_ && (c == ',' || is_space(c))))) return At::past;
  if (closes) return --depth_ == 0 ? At::last : At::inside;
  begun_ |= !is_space(c);
  in_string_ = c == '"' || c == '\'';
  quote_ = c;
  if (c == '{' || c == '[') ++depth_;
  return At::inside;
}

ArgumentsReader::Status ArgumentsReader::read(std::string_view& text,
                                              const std::function<void(std::string_view)>& emit) {
  if (!end_.begun()) {
    text.remove_prefix(leading_space(text));
    if (text.empty()) return Status::more;
    is_scalar_ = text.front() != '{' && text.front() != '[';
  }
  size_t length = 0;
  while (length < text.size() && !done_) {
    const JsonEnd::At at = end_.next(text[length]);
    done_ = at != JsonEnd::At::inside;
    if (at != JsonEnd::At::past) ++length;
  }
  if (is_scalar_) {
    scalar_ += text.substr(0, length);
  } else {
    std::string json;
    literals_.push(text.substr(0, length), json);
    emit(json);
  }
  text.remove_prefix(length);
  if (!done_) return Status::more;
  finish(emit);
  return Status::done;
}

void ArgumentsReader::finish(const std::function<void(std::string_view)>& emit) {
  std::string rest;
  literals_.flush(rest);
  if (!is_scalar_) return emit(rest);
  is_scalar_ = false;
  if (const auto text = json_string(scalar_)) return emit(*text);
  const std::string json = json_of_python(scalar_);
  emit(json == "null" || json.empty() ? "{}" : json);
}

CallReader::Status CallReader::read_all(std::string_view& text, bool last, Output& out) {
  Status status = Status::more;
  while (status == Status::more && !text.empty()) {
    const std::string_view before = text;
    status = step(text, out);
    if (!begun_) raw_ += before.substr(0, before.size() - text.size());
  }
  return status == Status::more && last ? finish(out) : status;
}

CallReader::Status CallReader::finish(Output& out) {
  if (!begun_) return Status::broken;
  if (at_ == At::arguments) {
    arguments_.finish([&](std::string_view json) { emit(json, out); });
  }
  return Status::done;
}

CallReader::Status CallReader::step(std::string_view& text, Output& out) {
  if (at_ == At::arguments) {
    const auto status = arguments_.read(text, [&](std::string_view json) { emit(json, out); });
    if (status == ArgumentsReader::Status::done) at_ = At::behind;
    return Status::more;
  }
  if (at_ == At::name || at_ == At::other || at_ == At::in_key) return step_token(text, out);
  const char c = text.front();
  text.remove_prefix(1);
  return is_space(c) ? Status::more : step_outside(c, out);
}

// Inside of a key or a value.
CallReader::Status CallReader::step_token(std::string_view& text, Output& out) {
  const char c = text.front();
  const JsonEnd::At at = end_.next(c);
  if (at != JsonEnd::At::past) {
    token_ += c;
    text.remove_prefix(1);
  }
  if (at == JsonEnd::At::inside) return Status::more;
  const At was = std::exchange(at_, At::behind);
  if (was == At::name) return end_name(out);
  if (was == At::in_key) at_ = At::colon;
  return Status::more;
}

// Between keys and values.
CallReader::Status CallReader::step_outside(char c, Output& out) {
  if (at_ == At::behind || (at_ == At::key && c == '}')) return behind_value(c, out);
  if (at_ == At::colon && c == ':') return begin_value();
  if (at_ == At::open && c == '{') {
    at_ = At::key;
  } else if (at_ == At::key && (c == '"' || c == '\'')) {
    at_ = At::in_key;
    end_ = {};
    token_ = c;
    (void)end_.next(c);
  } else {
    return begun_ ? behind_value('}', out) : Status::broken;
  }
  return Status::more;
}

CallReader::Status CallReader::begin_value() {
  const std::string key = json_string(token_).value_or("");
  token_.clear();
  end_ = {};
  at_ = At::other;
  if ((key == "name" || key == "function") && !begun_) {
    at_ = At::name;
  } else if ((key == "arguments" || key == "parameters") && !any_arguments_) {
    any_arguments_ = true;
    at_ = At::arguments;
  } else if (functions_ != nullptr && !begun_ && std::ranges::count(kBeside, key) == 0) {
    return Status::broken;
  }
  return Status::more;
}

CallReader::Status CallReader::end_name(Output& out) {
  const std::optional<std::string> name = json_string(token_);
  if (!name || name->empty()) return Status::broken;
  if (functions_ != nullptr && std::ranges::count(*functions_, *name, &OutputFunction::name) == 0) {
    return Status::broken;
  }
  begun_ = true;
  out.begin_call(*name);
  out.arguments(std::exchange(early_, {}));
  return Status::more;
}

CallReader::Status CallReader::behind_value(char c, Output& out) {
  if (c == ',') {
    at_ = At::key;
    return Status::more;
  }
  if (!begun_) return Status::broken;
  if (!any_arguments_) out.arguments("{}");
  at_ = At::over;
  out.end_call();
  return Status::done;
}

void CallReader::emit(std::string_view json, Output& out) {
  if (begun_) {
    out.arguments(json);
  } else {
    early_ += json;
  }
}

}  // namespace rbee::text
