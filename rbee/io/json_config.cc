#include "rbee/io/json_config.h"

#include <cmath>

#include "rbee/core/error.h"
#include "rbee/io/json_parse.h"

namespace rbee::io {

using nlohmann::json;

struct JsonConfig::Tree {
  json root;

  const json* find(std::string_view field) const {
    const auto at = root.find(field);
    return at == root.end() || at->is_null() ? nullptr : &*at;
  }
};

namespace {

std::string shown(const json& value) {
  constexpr size_t kShown = 80;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

[[noreturn]] void fail_kind(const std::string& where, const json& value, std::string_view wanted) {
  fail(Code::invalid_argument, where, "is ", shown(value), ", wanted ", wanted);
}

// Writers put whole numbers as 8 and as 8.0.
int64_t integer_of(const json& value, const std::string& where, IntegerRange range) {
  const std::string wanted = cat("a whole number from ", range.lowest, " to ", range.highest);
  if (!value.is_number()) fail_kind(where, value, wanted);
  const double number = value.get<double>();
  if (std::floor(number) != number || number < static_cast<double>(range.lowest) ||
      number > static_cast<double>(range.highest)) {
    fail_kind(where, value, wanted);
  }
  return static_cast<int64_t>(number);
}

double number_of(const json& value, const std::string& where, NumberRange range) {
  const bool fits = value.is_number() && range.holds(value.get<double>());
  if (!fits) fail_kind(where, value, range.describe());
  return value.get<double>();
}

}  // namespace

JsonConfig::JsonConfig(std::string_view text, std::string source) : source_(std::move(source)) {
  auto tree = std::make_shared<Tree>(Tree{parse_json(text, source_)});
  check(tree->root.is_object(), source_, "it does not hold an object");
  tree_ = std::move(tree);
}

JsonConfig::JsonConfig(std::shared_ptr<const Tree> tree, std::string source)
    : tree_(std::move(tree)), source_(std::move(source)) {}

const std::string& JsonConfig::source() const {
  return source_;
}

std::string JsonConfig::describe(std::string_view field) const {
  return cat(source_, ": ", field);
}

bool JsonConfig::has(std::string_view field) const {
  return tree_->find(field) != nullptr;
}

bool JsonConfig::is_list(std::string_view field) const {
  const json* value = tree_->find(field);
  return value != nullptr && value->is_array();
}

bool JsonConfig::is_text(std::string_view field) const {
  const json* value = tree_->find(field);
  return value != nullptr && value->is_string();
}

bool JsonConfig::is_off(std::string_view field) const {
  const json* value = tree_->find(field);
  if (value == nullptr || *value == false) return true;
  return value->is_string() ? value->get_ref<const std::string&>().empty()
                            : value->is_structured() && value->empty();
}

bool JsonConfig::is_null(std::string_view field) const {
  const auto at = tree_->root.find(field);
  return at != tree_->root.end() && at->is_null();
}

std::vector<std::string> JsonConfig::fields() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : tree_->root.items()) names.push_back(name);
  return names;
}

int64_t JsonConfig::integer(std::string_view field, IntegerRange range) const {
  const json* value = tree_->find(field);
  if (value == nullptr) fail(Code::not_found, describe(field), "is missing");
  return integer_of(*value, describe(field), range);
}

int64_t JsonConfig::integer_or(std::string_view field, int64_t fallback, IntegerRange range) const {
  const json* value = tree_->find(field);
  return value == nullptr ? fallback : integer_of(*value, describe(field), range);
}

double JsonConfig::number_or(std::string_view field, double fallback, NumberRange range) const {
  const json* value = tree_->find(field);
  return value == nullptr ? fallback : number_of(*value, describe(field), range);
}

bool JsonConfig::flag_or(std::string_view field, bool fallback) const {
  const json* value = tree_->find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail_kind(describe(field), *value, "true or false");
  return value->get<bool>();
}

std::string JsonConfig::text(std::string_view field) const {
  const json* value = tree_->find(field);
  if (value == nullptr) fail(Code::not_found, describe(field), "is missing");
  if (!value->is_string()) fail_kind(describe(field), *value, "a text");
  return value->get<std::string>();
}

std::string JsonConfig::text_or(std::string_view field, std::string_view fallback) const {
  return has(field) ? text(field) : std::string(fallback);
}

std::vector<int64_t> JsonConfig::integers(std::string_view field, IntegerRange range) const {
  const json* value = tree_->find(field);
  if (value == nullptr) return {};
  if (!value->is_array()) fail_kind(describe(field), *value, "a list of whole numbers");
  std::vector<int64_t> out;
  for (const json& item : *value) out.push_back(integer_of(item, describe(field), range));
  return out;
}

std::vector<double> JsonConfig::numbers(std::string_view field, NumberRange range) const {
  const json* value = tree_->find(field);
  if (value == nullptr) return {};
  if (!value->is_array()) fail_kind(describe(field), *value, "a list of numbers");
  std::vector<double> out;
  for (const json& item : *value) out.push_back(number_of(item, describe(field), range));
  return out;
}

std::vector<std::string> JsonConfig::texts(std::string_view field) const {
  const json* value = tree_->find(field);
  if (value == nullptr) return {};
  if (!value->is_array()) fail_kind(describe(field), *value, "a list of texts");
  std::vector<std::string> out;
  for (const json& item : *value) {
    // model_index.json has [null, null] for a part that is not there.
    if (item.is_null()) continue;
    if (!item.is_string()) fail_kind(describe(field), *value, "a list of texts");
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<int64_t> JsonConfig::integer_each(std::string_view field, size_t count,
                                              IntegerRange range, int64_t fallback) const {
  const json* value = tree_->find(field);
  if (value == nullptr || !value->is_array()) {
    return std::vector<int64_t>(count, integer_or(field, fallback, range));
  }
  std::vector<int64_t> out = integers(field, range);
  if (out.size() != count) {
    fail_kind(describe(field), *value, cat("a number, or a list of ", count));
  }
  return out;
}

std::vector<std::vector<int64_t>> JsonConfig::integer_lists(std::string_view field, size_t count,
                                                            IntegerRange range,
                                                            int64_t fallback) const {
  const json* value = tree_->find(field);
  if (value == nullptr || !value->is_array()) {
    return std::vector<std::vector<int64_t>>(count, {integer_or(field, fallback, range)});
  }
  if (value->size() != count) {
    fail_kind(describe(field), *value, cat("a number, or a list of ", count));
  }
  std::vector<std::vector<int64_t>> out;
  for (const json& item : *value) {
    std::vector<int64_t>& numbers = out.emplace_back();
    if (!item.is_array()) numbers.push_back(integer_of(item, describe(field), range));
    for (const json& inner : item.is_array() ? item : json::array()) {
      numbers.push_back(integer_of(inner, describe(field), range));
    }
    if (numbers.empty()) fail_kind(describe(field), *value, "a list without empty lists");
  }
  return out;
}

bool JsonConfig::any_flag(std::string_view field) const {
  const json* value = tree_->find(field);
  if (value == nullptr) return false;
  bool any = false;
  for (const json& item : *value) {
    if (!item.is_boolean()) fail_kind(describe(field), *value, "a list of true and false");
    any = any || item.get<bool>();
  }
  return any;
}

JsonConfig JsonConfig::section(std::string_view field) const {
  const json* value = tree_->find(field);
  if (value != nullptr && !value->is_object()) fail_kind(describe(field), *value, "an object");
  const json empty = json::object();
  return {std::make_shared<Tree>(Tree{value == nullptr ? empty : *value}), describe(field)};
}

}  // namespace rbee::io
