#pragma once
// Validates JSON values that schemas name against schemas (draft 2020-12). Internal to the folder.

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_merge.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {

// Takes schemas that check_keywords() has passed, and schemas made from those. Caches what it has
// compiled and resolved. All calls throw unsupported if together they did too much work.
class SchemaValidator {
 public:
  // root: resolves references; must outlive it.
  explicit SchemaValidator(const Schema& root) : root_(root) {}

  // Throws unsupported for keywords that cannot be checked, and if the value does not match this
  // project's pattern of a `format`, which is narrower than the format.
  bool valid(const Schema& value, const Schema& schema, const std::string& place);
  // Whether some part of the text matches the pattern. Throws as parse_regex does.
  bool matches_anywhere(const std::string& pattern, std::string_view text,
                        const std::string& place);
  // The schema at `#...`, after check_keywords(). Throws invalid_argument.
  const Schema& resolve(const std::string& pointer, const std::string& place);

 private:
  const Schema& find_reference(const std::string& pointer, const std::string& place);
  void look(size_t times);
  bool valid(const Schema& value, const Schema& schema, int depth);
  bool valid_logic(const Schema& value, const Schema& schema, int depth);
  bool valid_string(const std::string& value, const Schema& schema);
  bool valid_array(const Schema& value, const Schema& schema, int depth);
  bool valid_object(const Schema& value, const Schema& schema, int depth);
  bool valid_member(const std::string& name, const Schema& value, const Schema& schema, int depth);
  bool same(const Schema& a, const Schema& b);
  bool are_unique(const Schema& list);
  bool matches_pattern(const std::string& pattern, std::string_view text, Match match,
                       const std::string& place);

  const Schema& root_;
  std::string place_;
  int64_t looks_ = 0;
  int64_t pattern_work_ = 4'000'000;  // of TextSet
  std::map<std::string, TextSet> patterns_, formats_;
  std::map<std::string, const Schema*> references_, anchors_;
  std::set<const Schema*> checked_;  // many references may lead to the same schema
};

// Also true for numbers kept as strings; see schema_reader.h.
bool is_number_value(const Schema& value);
double nearest_double(const Schema& number);
std::partial_ordering compare_numbers(const Schema& a, const Schema& b);
// The last integer within a bound; for more than 20 digits, some integer of that size.
__int128 last_integer(const Schema& bound, bool upper);
// The number as written.
std::string number_text(const Schema& number);
// The JSON of a value that a schema names.
std::string json_text(const Schema& value);
// A text that is equal for values that same_value calls equal.
std::string value_text(const Schema& value);
// Whether two values are equal; the order of members and the notation of numbers do not count.
bool same_value(const Schema& a, const Schema& b);

// The name of the value's type; "integer" for whole numbers.
std::string_view type_of(const Schema& value);
// types: a name or an array of names.
bool has_type(const Schema& value, const Schema& types);

}  // namespace rbee::grammar
