#include "rbee/grammar/schema_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rbee/core/error.h"

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
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    if (whole && (is_value() || std::ranges::any_of(open_, &Open::exact))) {
      fail(Code::unsupported, "json_schema",
           "an integer of const or enum is beyond 64 bits: ", text.substr(0, kShownDigits));
    }
    return add(value);
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
  bool parse_error(size_t position, const std::string&, const Schema::exception& error) override {
    if (dynamic_cast<const Schema::out_of_range*>(&error) != nullptr) {
      fail(Code::invalid_argument, "json_schema", "a number is out of range near byte ", position);
    }
    fail(Code::invalid_argument, "json_schema", "not JSON in UTF-8; the fault is near byte ",
         position);
  }

 private:
  static constexpr size_t kShownDigits = 40;

  struct Open {
    Schema* value;
    bool exact;  // of const or enum
  };

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

  // Whether const or enum comes next.
  bool is_value() const {
    return !open_.empty() && open_.back().value->is_object() && (key_ == "const" || key_ == "enum");
  }

  bool add(Schema value) {
    put(std::move(value));
    return true;
  }

  bool open(Schema value) {
    if (std::cmp_greater(open_.size(), 2 * kMaxSchemaDepth)) {
      fail(Code::unsupported, "json_schema", "#: nested too deep");
    }
    const bool exact = is_value();
    Schema* const at = put(std::move(value));
    open_.push_back({at, exact});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Schema root_;
  std::vector<Open> open_;
  std::string key_;
};

}  // namespace

Schema read_schema(std::string_view text) {
  Reader reader;
  Schema::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace rbee::grammar
