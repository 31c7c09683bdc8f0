#pragma once
// One settings file (config.json, scheduler_config.json, model_index.json). Access is checked:
// errors name the file, the field and its value.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/number_range.h"

namespace rbee::io {

// The whole numbers that a setting may have, both included.
struct IntegerRange {
  int64_t lowest = 1;
  int64_t highest = int64_t{1} << 31;
};

// Getters throw invalid_argument for a value of another kind or out of range, and not_found if the
// field is absent and the call gives no fallback. A field that is null counts as absent.
class JsonConfig {
 public:
  // `source` begins error messages, e.g. the path of the file. Throws invalid_argument if the text
  // is not a JSON object.
  JsonConfig(std::string_view text, std::string source);

  const std::string& source() const;
  bool has(std::string_view field) const;
  bool is_list(std::string_view field) const;
  bool is_text(std::string_view field) const;
  bool is_null(std::string_view field) const;  // there, and null
  // Absent, false, or an empty list, object or text.
  bool is_off(std::string_view field) const;
  std::vector<std::string> fields() const;

  int64_t integer(std::string_view field, IntegerRange range = {}) const;
  int64_t integer_or(std::string_view field, int64_t fallback, IntegerRange range = {}) const;
  double number_or(std::string_view field, double fallback, NumberRange range = {}) const;
  bool flag_or(std::string_view field, bool fallback) const;
  std::string text(std::string_view field) const;
  std::string text_or(std::string_view field, std::string_view fallback) const;
  // A list; absent = empty.
  std::vector<int64_t> integers(std::string_view field, IntegerRange range = {}) const;
  std::vector<double> numbers(std::string_view field, NumberRange range = {}) const;
  std::vector<std::string> texts(std::string_view field) const;
  // A list of `count` numbers, or one number that stands for all of them.
  std::vector<int64_t> integer_each(std::string_view field, size_t count, IntegerRange range = {},
                                    int64_t fallback = 0) const;
  // A list of `count` items, each a number or a list of them, or one number that stands for all.
  std::vector<std::vector<int64_t>> integer_lists(std::string_view field, size_t count,
                                                  IntegerRange range = {},
                                                  int64_t fallback = 0) const;
  // Whether a list of booleans has a true.
  bool any_flag(std::string_view field) const;
  // The object in a field; an empty one when it is absent.
  JsonConfig section(std::string_view field) const;

  // "unet/config.json: in_channels"
  std::string describe(std::string_view field) const;

 private:
  struct Tree;
  JsonConfig(std::shared_ptr<const Tree> tree, std::string source);

  std::shared_ptr<const Tree> tree_;
  std::string source_;
};

}  // namespace rbee::io
