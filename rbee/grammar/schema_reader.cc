#include "rbee/grammar/schema_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"
#include "rbee/grammar/json_decimal.h"

namespace rbee::grammar {
namespace {

// Builds the value while it watches the depth, and the texts of numbers.
class Reader : public nlohmann::json_sax<Schema> {
 public:
  Schema take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    const bool exact = is_value() || is_bound() || std::ranges::any_of(open_, &Open::exact);
    return add(exact ? number_of(value, text) : Schema(value));
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool start_object(size_t) override { return open(Schema::object()); }
  bool start_array(size_t) override { return open(Schema::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const Schema::exception&) override { return false; }

 private:
  struct Open {
    Schema* value;
    bool exact;  // of const or enum
    bool names;  // of properties and such, in place of keywords
  };

  // Integers that are doubles would come out with an exponent.
  static Schema number_of(double value, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    if (!whole && JsonDecimal(text) == JsonDecimal(Schema(value).dump())) return value;
    return Schema::binary({text.begin(), text.end()});
  }

  Schema* put(Schema value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Schema& outer = *open_.back().value;
    if (outer.is_array()) {
      outer.push_back(std::move(value));
      return &outer.back();
    }
    return &(outer[key_] = std::move(value));
  }

  // Whether the value of a keyword comes next.
  bool is_keyword() const {
    return !open_.empty() && !open_.back().names && open_.back().value->is_object();
  }
  bool is_value() const { return is_keyword() && (key_ == "const" || key_ == "enum"); }
  bool is_bound() const {
    return is_keyword() && (key_.ends_with("inimum") || key_.ends_with("aximum"));
  }

  // Whether the next value is an object with names that are no keywords.
  bool holds_names() const {
    static constexpr std::array<std::string_view, 7> kHold{
        "properties", "patternProperties", "dependentSchemas", "dependencies",
        "$defs",      "definitions",       "dependentRequired"};
    return is_keyword() && std::ranges::find(kHold, key_) != kHold.end();
  }

  bool add(Schema value) {
    put(std::move(value));
    return true;
  }

  bool open(Schema value) {
    if (std::cmp_greater(open_.size(), 2 * kMaxSchemaDepth)) {
      fail(Code::unsupported, "json_schema", "#: nested too deep");
    }
    const bool exact = is_value(), names = holds_names();
    Schema* const at = put(std::move(value));
    open_.push_back({at, exact, names});
    return true;
  }

  bool close() {
    const Open& done = open_.back();
    const bool is_schema = done.value->is_object() && !done.names;
    if (is_schema && std::ranges::none_of(open_, &Open::exact)) split_bounds(*done.value);
    open_.pop_back();
    return true;
  }

  // Draft 4, and OpenAPI 3.0 after it, say by a boolean whether a bound itself is excluded.
  static void split_bounds(Schema& schema) {
    for (const auto& [exclusive, bound] :
         {std::pair{"exclusiveMinimum", "minimum"}, std::pair{"exclusiveMaximum", "maximum"}}) {
      const auto flag = schema.find(exclusive);
      if (flag == schema.end() || !flag->is_boolean()) continue;
      const bool excluded = flag->get<bool>();
      const auto limit = schema.find(bound);
      if (excluded && limit == schema.end()) continue;  // no draft allows it
      if (excluded) {
        *flag = std::move(*limit);
        schema.erase(bound);
      } else {
        schema.erase(exclusive);
      }
    }
  }

  Schema root_;
  std::vector<Open> open_;
  std::string key_;
};

}  // namespace

Schema read_schema(std::string_view text) {
  Reader reader;
  if (!Schema::sax_parse(text, &reader)) {
    fail(Code::invalid_argument, "json_schema", "not JSON in UTF-8: ", json_fault(text));
  }
  return reader.take();
}

}  // namespace rbee::grammar
