#pragma once
// What JSON schemas say together: references, allOf, oneOf, if, not and what depends on properties
// become merged schemas and alternatives of them. Internal to the folder.

#include <optional>
#include <string>
#include <vector>

#include "rbee/grammar/schema_merge.h"
#include "rbee/grammar/schema_validator.h"

namespace rbee::grammar {

inline constexpr int kMaxSchemaDepth = 64;

// Values that a schema without other alternatives excludes: what `not` may still hold there.
struct Excluded {
  std::vector<Schema> values;
  std::vector<std::string> patterns;  // of strings
  bool integers = false;              // all whole numbers
};
// Throws internal where `not` holds something else.
Excluded excluded_by(const Schema& schema);

class SchemaLogic {
 public:
  // root: outlives it.
  explicit SchemaLogic(const Schema& root) : validator_(root) {}

  const Schema& resolve(const std::string& pointer, const std::string& place) {
    return validator_.resolve(pointer, place);
  }
  // Schemas one of which holds for each value that is written; each without $ref, allOf, anyOf,
  // oneOf, if and dependent..., and with `not` of enum, const, and beside the type string of
  // patterns or beside numbers of {"multipleOf": 1} alone. Where `not` cannot be said otherwise,
  // the ways that can be are what is left; unsupported when there are none. Throws NothingFits
  // where no value fits.
  std::vector<Schema> ways(const Schema& schema, const std::string& place, int depth);
  // As in schema_validator.h.
  bool holds(const Schema& value, const Schema& schema, const std::string& place) {
    return validator_.valid(value, schema, place);
  }
  bool matches(const std::string& pattern, std::string_view text, const std::string& place) {
    return validator_.matches_anywhere(pattern, text, place);
  }
  // Of a schema with enum or const their values that are valid, each once. Nothing: it has neither.
  std::optional<std::vector<Schema>> named_values(const Schema& schema, const std::string& place);
  // All values that are valid, each once, where these are few and known: enum, const, booleans,
  // null, integers between bounds. Empty where no value fits.
  std::optional<std::vector<Schema>> values(const Schema& schema, const std::string& place,
                                            int depth);
  // Counts steps of work. Throws unsupported when there were too many.
  void spend(const std::string& place, int64_t steps = 1);

 private:
  struct Negation {
    std::vector<Schema> ways;
    std::string missing;  // a keyword that has no other way to be said; empty: none
  };
  Schema flatten(const Schema& schema, const std::string& place, int depth);
  Schema one_of(const Schema& list, const std::string& place, int depth);
  Negation negate(const Schema& schema, const std::string& place, int depth);

  SchemaValidator validator_;
  int64_t steps_ = 0;
};

// A list of items and additionalItems, as until draft 2019-09, become prefixItems and items.
void name_tuples(Schema& schema);

// Keywords that cannot be held are refused: unsupported.
void refuse_keywords(const Schema& schema, const std::string& place);

}  // namespace rbee::grammar
