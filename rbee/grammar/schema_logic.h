#pragma once
// Resolves the logic of JSON schemas: references, allOf, oneOf, if, not and dependent... become
// merged schemas and alternatives. Internal to the folder.

#include <optional>
#include <string>
#include <vector>

#include "rbee/grammar/schema_merge.h"
#include "rbee/grammar/schema_validator.h"

namespace rbee::grammar {

inline constexpr int kMaxSchemaDepth = 64;

// Values that the remaining `not` of an alternative excludes.
struct Excluded {
  std::vector<Schema> values;
  std::vector<std::string> patterns;  // of strings
  bool integers = false;              // all whole numbers
};
// Throws internal if `not` has anything else.
Excluded excluded_by(const Schema& schema);

class SchemaLogic {
 public:
  // `root` must outlive it.
  explicit SchemaLogic(const Schema& root) : validator_(root) {}

  const Schema& resolve(const std::string& pointer, const std::string& place) {
    return validator_.resolve(pointer, place);
  }
  // Alternatives: each written value is valid under one of them. They have no $ref, allOf, anyOf,
  // oneOf, if and dependent..., and their `not` has only enum, const, patterns (for strings) or
  // {"multipleOf": 1} (for numbers). Drops alternatives whose `not` cannot be expressed so; throws
  // unsupported if none is left. Throws NothingFits if no value is valid.
  std::vector<Schema> ways(const Schema& schema, const std::string& place, int depth);
  // As in schema_validator.h.
  bool holds(const Schema& value, const Schema& schema, const std::string& place) {
    return validator_.valid(value, schema, place);
  }
  bool matches(const std::string& pattern, std::string_view text, const std::string& place) {
    return validator_.matches_anywhere(pattern, text, place);
  }
  // The valid values of enum or const, each once; nothing if the schema has neither.
  std::optional<std::vector<Schema>> named_values(const Schema& schema, const std::string& place);
  // All valid values, each once, if they are few and known: enum, const, booleans, null, integers
  // between bounds. Empty if no value is valid.
  std::optional<std::vector<Schema>> values(const Schema& schema, const std::string& place,
                                            int depth);
  // Counts steps of work. Throws unsupported if there were too many.
  void spend(const std::string& place, int64_t steps = 1);

 private:
  struct Negation {
    std::vector<Schema> ways;
    std::string missing;  // a keyword that cannot be expressed; empty: none
  };
  Schema flatten(const Schema& schema, const std::string& place, int depth);
  Schema one_of(const Schema& list, const std::string& place, int depth);
  Negation negate(const Schema& schema, const std::string& place, int depth);

  SchemaValidator validator_;
  int64_t steps_ = 0;
};

// Turns a list of items and additionalItems (up to draft 2019-09) into prefixItems and items.
void name_tuples(Schema& schema);

// Throws unsupported for keywords that a grammar cannot express.
void refuse_keywords(const Schema& schema, const std::string& place);

}  // namespace rbee::grammar
