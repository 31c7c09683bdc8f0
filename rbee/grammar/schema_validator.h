#pragma once
// Whether JSON values are valid under schemas (draft 2020-12), for the values that schemas name.
// Internal to the folder.

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_merge.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {

// Schemas are those that check_keywords() has passed, and what is made of them. Keeps what it has
// compiled and found. All throw unsupported where they did too much together.
class SchemaValidator {
 public:
  // root: of references; outlives it.
  explicit SchemaValidator(const Schema& root) : root_(root) {}

  // Throws unsupported for keywords that cannot be held, and for a `format` whose pattern here,
  // which is narrower than the format, the value does not match.
  bool valid(const Schema& value, const Schema& schema, const std::string& place);
  // Whether some part of the text matches. Throws as parse_regex does.
  bool matches_anywhere(const std::string& pattern, std::string_view text,
                        const std::string& place);
  // What `#...` points to, with keywords that are checked. Throws invalid_argument.
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
  std::set<const Schema*> checked_;  // many references may lead to one
};

// Also of the numbers of values and bounds that are texts; see schema_reader.h.
bool is_number_value(const Schema& value);
double nearest_double(const Schema& number);
std::partial_ordering compare_numbers(const Schema& a, const Schema& b);
// The last integer that is not beyond a bound; of more than 20 digits: some of these.
__int128 last_integer(const Schema& bound, bool upper);
// As it is written.
std::string number_text(const Schema& number);
// The JSON of a value that a schema names.
std::string json_text(const Schema& value);
// A text that is the same for the same values, as same_value says.
std::string value_text(const Schema& value);
// Whether two values are the same: the order of members says nothing, nor how a number is written.
bool same_value(const Schema& a, const Schema& b);

// The name of the value's type; "integer" for whole numbers.
std::string_view type_of(const Schema& value);
// types: a name or an array of names.
bool has_type(const Schema& value, const Schema& types);

}  // namespace rbee::grammar
