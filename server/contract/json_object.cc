#include "server/contract/json_object.h"

#include <cmath>
#include <set>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 100;
constexpr size_t kMaxNoted = 32;  // a list may hold half as many wrong entries as a body has bytes

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

[[noreturn]] void refuse_body(std::string constraint, std::string message) {
  throw InvalidBody({{.field = "body",
                      .constraint = std::move(constraint),
                      .message = std::move(message),
                      .value = {}}});
}

// Watches the parser for what JSON allows and we do not.
class Limits {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event != Event::object_end && event != Event::array_end && ++parts_ > kMaxJsonParts) {
      refuse_body(cat("max_count(", kMaxJsonParts, ")"),
                  cat("the JSON has more than ", kMaxJsonParts, " names and values"));
    }
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMaxJsonDepth) {
        refuse_body(cat("max_depth(", kMaxJsonDepth, ")"),
                    cat("the JSON is nested deeper than ", kMaxJsonDepth, " levels"));
      }
      if (event == Event::object_start) names_.emplace_back();
    } else if (event == Event::object_end) {
      names_.pop_back();
    } else if (event == Event::key) {
      const std::string& name = parsed.get_ref<const std::string&>();
      last_name_ = shown(parsed);
      if (!names_.back().insert(name).second) {
        refuse_body("unique_names", cat("the name ", last_name_, " occurs twice"));
      }
      if (names_.back().size() > kMaxJsonNames) {
        refuse_body(
            cat("max_names(", kMaxJsonNames, ")"),
            cat("an object has more than ", kMaxJsonNames, " names; the last is ", last_name_));
      }
    }
    return true;
  }

  // The last name that was read, as JSON; empty before the first.
  const std::string& last_name() const { return last_name_; }

 private:
  std::vector<std::set<std::string>> names_;  // of the objects that are open
  std::string last_name_;
  size_t parts_ = 0;  // names and values so far
};

// 5.0 is, as in JSON schemas.
bool is_whole(const json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

thread_local NamesRead* names_read = nullptr;

json parse_value(std::string_view body) {
  json value;
  Limits limits;
  try {
    value = json::parse(body, [&limits](int depth, json::parse_event_t event, json& parsed) {
      return limits(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    // The library's messages quote the body around the fault, which may not be UTF-8.
    const auto* at = dynamic_cast<const json::parse_error*>(&error);
    if (at != nullptr) {
      refuse_body("json", cat("not JSON in UTF-8; the fault is near byte ", at->byte));
    }
    const std::string& name = limits.last_name();
    refuse_body("json", cat("a number is out of range", name.empty() ? "" : " at ", name));
  }
  return value;
}

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

json parse_object(std::string_view body) {
  if (body.empty()) refuse_body("type(object)", "the body is empty; it must be a JSON object");
  json value = parse_value(body);
  if (!value.is_object()) refuse_body("type(object)", "the body must be a JSON object");
  return value;
}

json parse_array(std::string_view body) {
  if (body.empty()) refuse_body("type(array)", "the body is empty; it must be a JSON array");
  json value = parse_value(body);
  if (!value.is_array()) refuse_body("type(array)", "the body must be a JSON array");
  return value;
}

NamesRead::NamesRead() {
  names_read = this;
}

NamesRead::~NamesRead() {
  names_read = nullptr;
}

const json* ObjectReader::find(const char* name) const {
  if (names_read != nullptr) names_read->names_.insert(prefix_ + name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ObjectReader::note(std::string_view name, std::string constraint, std::string_view message,
                        const json* value) {
  if (errors_.size() >= kMaxNoted) return;
  errors_.push_back({.field = cat(prefix_, name),
                     .constraint = std::move(constraint),
                     .message = cat(prefix_, name, " ", message),
                     .value = value != nullptr ? shown(*value) : std::string()});
}

std::optional<std::string> ObjectReader::text(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  note(name, "type(string)", "must be a string", value);
  return std::nullopt;
}

std::optional<bool> ObjectReader::boolean(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  note(name, "type(boolean)", "must be true or false", value);
  return std::nullopt;
}

std::optional<float> ObjectReader::number(const char* name, Range<double> range) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string bounds = cat(range.open_low ? "above " : "from ", range.low,
                                 range.open_low ? " and at most " : " to ", range.high);
  if (!value->is_number()) {
    note(name, "type(number)", cat("must be a number ", bounds), value);
    return std::nullopt;
  }
  // Judged as the float that is used: 1e-60 is not above 0.
  const auto number = static_cast<float>(value->get<double>());
  const bool high_enough = range.open_low ? number > range.low : number >= range.low;
  if (high_enough && number <= range.high) return number;
  note(name, cat("range(", range.low, range.open_low ? "<..=" : "..=", range.high, ")"),
       cat("must be ", bounds), value);
  return std::nullopt;
}

std::optional<int32_t> ObjectReader::integer(const char* name, Range<int32_t> range) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string bounds = cat("from ", range.low, " to ", range.high);
  if (!is_whole(*value)) {
    note(name, "type(integer)", cat("must be an integer ", bounds), value);
    return std::nullopt;
  }
  // A double holds every 32-bit number, and rounds none of the others to one.
  const auto number = value->get<double>();
  if (number >= range.low && number <= range.high) return static_cast<int32_t>(number);
  note(name, cat("range(", range.low, "..=", range.high, ")"), cat("must be ", bounds), value);
  return std::nullopt;
}

std::optional<uint64_t> ObjectReader::seed(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  if (is_whole(*value)) {
    const auto number = value->get<double>();
    if (number < 0) return std::nullopt;
    if (number < 0x1p64) return static_cast<uint64_t>(number);
  }
  note(name, "type(u64)", "must be an integer, at most 18446744073709551615", value);
  return std::nullopt;
}

}  // namespace rbee::server
