#include "server/wire/json_body.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/core/json_fault.h"
#include "rbee/core/wide_integers.h"
#include "server/wire/generate_request.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kShownBytes = 100;

[[noreturn]] void refuse_body(std::string constraint, std::string message) {
  throw InvalidBody({{.field = "body",
                      .constraint = std::move(constraint),
                      .message = std::move(message),
                      .value = {}}});
}

// Scans a body and keeps only where its fields begin. Refuses what JSON allows but the workers do
// not.
class Survey final : public nlohmann::json_sax<json> {
 public:
  Survey(std::string_view text, std::span<const LongString> strings)
      : text_(text), end_(text.data() + text.size()), at_(text.data()) {
    // The parser takes a null byte for the end, and would pass over what follows it.
    if (text.find('\0') != std::string_view::npos) {
      refuse_body("json", cat("not JSON in UTF-8: ", json_fault(text)));
    }
    json::sax_parse(JsonBytes(at_, &at_, strings), JsonBytes(end_, &at_, {}), this);
  }

  // '{', '[', or 0 for other values.
  char outermost() const { return outermost_; }
  // The outermost object's fields: names, and the text after each.
  std::map<std::string, std::string_view> take_fields() { return std::move(fields_); }

  bool null() override { return count(); }
  bool boolean(bool /*value*/) override { return count(); }
  bool number_integer(int64_t /*value*/) override { return count(); }
  bool number_unsigned(uint64_t /*value*/) override { return count(); }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return count(); }
  bool string(std::string& /*value*/) override { return count(); }
  bool binary(json::binary_t& /*value*/) override { return count(); }
  bool start_object(size_t /*size*/) override { return open('{'); }
  bool end_object() override { return close(); }
  bool start_array(size_t /*size*/) override { return open('['); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    count();
    std::set<std::string>& names = names_.back();
    last_name_ = name;
    if (!names.insert(name).second) {
      refuse_body("unique_names", cat("the name ", shown(name), " occurs twice"));
    }
    if (names.size() > kMaxJsonNames) {
      refuse_body(
          cat("max_names(", kMaxJsonNames, ")"),
          cat("an object has more than ", kMaxJsonNames, " names; the last is ", shown(name)));
    }
    if (names_.size() == 1) fields_.emplace(std::move(name), std::string_view(at_, end_));
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const json::exception& error) override {
    if (dynamic_cast<const json::parse_error*>(&error) != nullptr) {
      refuse_body("json", cat("not JSON in UTF-8: ", json_fault(text_)));
    }
    refuse_body("json", cat("a number is out of range",
                            last_name_.empty() ? "" : cat(" at ", shown(last_name_))));
  }

 private:
  bool count() {
    if (++parts_ > kMaxJsonParts) {
      refuse_body(cat("max_count(", kMaxJsonParts, ")"),
                  cat("the JSON has more than ", kMaxJsonParts, " names and values"));
    }
    return true;
  }
  bool open(char kind) {
    count();
    if (names_.empty()) outermost_ = kind;
    if (names_.size() >= kMaxJsonDepth) {
      refuse_body(cat("max_depth(", kMaxJsonDepth, ")"),
                  cat("the JSON is nested deeper than ", kMaxJsonDepth, " levels"));
    }
    names_.emplace_back();
    return true;
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  const std::string_view text_;
  const char* const end_;
  const char* at_;  // the next unread byte
  char outermost_ = 0;
  std::vector<std::set<std::string>> names_;  // of the open lists and objects
  std::string last_name_;                     // empty before the first
  size_t parts_ = 0;                          // names and values so far
  std::map<std::string, std::string_view> fields_;
};

json& add(json::object_t& object, std::string& name) {
  return object.emplace(std::move(name), json()).first->second;
}
// Inserts without a lookup, because the names are known to differ; ordered_map would compare all.
ordered_json& add(ordered_json::object_t& object, std::string& name) {
  ordered_json::object_t::Container& list = object;
  return list.emplace_back(std::move(name), ordered_json()).second;
}

// Makes a tree of text that Survey has accepted.
template <typename Json>
class Tree final : public nlohmann::json_sax<Json> {
 public:
  // Reads one value, whatever follows it. strings: of the text or of one around it.
  Tree(std::string_view text, std::span<const LongString> strings) : at_(text.data()) {
    const auto first = std::ranges::lower_bound(strings, at_, {}, &LongString::begin);
    strings_ = {first, strings.end()};
    Json::sax_parse(JsonBytes(at_, &at_, strings_), JsonBytes(at_ + text.size(), &at_, {}), this,
                    Json::input_format_t::json, false);
  }
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& text) override {
    return kHolds && may_be_rounded(text) ? put(held_number(text)) : put(value);
  }
  bool string(std::string& value) override {
    // The parser has read the quote behind a long string.
    if (!strings_.empty() && strings_.front().end + 1 == at_) {
      value.assign(strings_.front().begin, strings_.front().end);
      strings_ = strings_.subspan(1);
    }
    return put(kHolds ? held_text(std::move(value)) : std::move(value));
  }
  bool binary(typename Json::binary_t& value) override { return put(std::move(value)); }
  bool start_object(size_t /*size*/) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    field_ = &add(open_.back()->template get_ref<typename Json::object_t&>(), name);
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr bool kHolds = std::is_same_v<Json, ordered_json>;

  Json& place(Json value) {
    Json* to = open_.empty() ? &root_ : field_;
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return open_.back()->back();
    }
    *to = std::move(value);
    return *to;
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const char* at_;                       // the next unread byte
  std::span<const LongString> strings_;  // those after it
  Json root_;
  std::vector<Json*> open_;
  Json* field_ = nullptr;  // the innermost object's field for the next value
};

// The value after a name and its colon.
std::string_view value_after_name(std::string_view text) {
  return text.substr(text.find(':') + 1);
}

}  // namespace

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

JsonBody::JsonBody(std::string_view text) : strings_(long_strings(text)) {
  if (text.empty()) refuse_body("type(object)", "the body is empty; it must be a JSON object");
  Survey survey(text, strings_);
  if (survey.outermost() != '{') refuse_body("type(object)", "the body must be a JSON object");
  fields_ = survey.take_fields();
}

void JsonBody::read(const std::string& name) const {
  const auto found = fields_.find(name);
  if (found == fields_.end() || object_.contains(name)) return;
  object_[name] = Tree<json>(value_after_name(found->second), strings_).take();
}

json& JsonBody::operator[](const std::string& name) {
  read(name);
  return object_[name];
}

ordered_json JsonBody::in_order(const std::string& name) const {
  return Tree<ordered_json>(value_after_name(fields_.at(name)), strings_).take();
}

json parse_array(std::string_view text) {
  if (text.empty()) refuse_body("type(array)", "the body is empty; it must be a JSON array");
  const std::vector<LongString> strings = long_strings(text);
  if (Survey(text, strings).outermost() != '[') {
    refuse_body("type(array)", "the body must be a JSON array");
  }
  return Tree<json>(text, strings).take();
}

ordered_json parse_in_order(std::string_view text) {
  return Tree<ordered_json>(text, long_strings(text)).take();
}

std::string dump_in_order(const ordered_json& tree) {
  return release_integers(dump(tree));
}

}  // namespace rbee::server
