#pragma once
// Objects, arrays, strings and numbers of schemas that choose nothing any more (SchemaLogic::ways)
// as grammars. Internal to the folder.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "rbee/grammar/json_rules.h"
#include "rbee/grammar/schema_logic.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {

// What these ask of the whole.
class SchemaBuilder {
 public:
  virtual ~SchemaBuilder() = default;
  // Throws NothingFits where no value is valid.
  virtual ExprPtr convert(const Schema& schema, const std::string& place, int depth) = 0;
  // Null there.
  ExprPtr convert_if_any(const Schema& schema, const std::string& place, int depth);

  JsonRules& rules() { return rules_; }
  SchemaLogic& logic() { return logic_; }
  // Left for sets of texts (text_set.h).
  int64_t& text_work() { return text_work_; }
  // Texts of formats by their names, as far as they were made.
  std::map<std::string, TextSet>& texts_of_formats() { return texts_of_formats_; }
  // Of schemas of one type that say the same by these keywords, what `make` gives for the first.
  template <typename Make>
  ExprPtr once(const Schema& schema, const char* type, std::span<const char* const> keywords,
               const Make& make) {
    Schema key = Schema::array({type});
    for (const char* keyword : keywords) {
      key.push_back(schema.contains(keyword) ? Schema::array({schema[keyword]}) : Schema());
    }
    const std::string text = key.dump();
    const auto known = made_.find(text);
    return known != made_.end() ? known->second : made_.emplace(text, make()).first->second;
  }

 protected:
  explicit SchemaBuilder(const Schema& root) : logic_(root) {}

 private:
  JsonRules rules_;
  SchemaLogic logic_;
  std::map<std::string, ExprPtr> made_;
  std::map<std::string, TextSet> texts_of_formats_;
  int64_t text_work_ = 20'000'000;
};

ExprPtr object_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                         int depth);
ExprPtr array_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                        int depth);
ExprPtr string_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place);
ExprPtr number_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                         bool integer);

// A whole number from 0 on; fallback where the schema has none.
int64_t count_of(const Schema& schema, const char* keyword, int64_t fallback,
                 const std::string& place);
// The characters of any string, each written in one way, without the quotes.
ExprPtr any_plain_string();
// The JSON strings so written that are valid.
ExprPtr plain_strings(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                      int depth);

// Parts that come in this order with commas between, each at most once.
struct Counted {
  struct Part {
    ExprPtr body;
    bool required = false;
  };
  std::vector<Part> parts;
  ExprPtr more;                       // null, or what may follow, again and again
  int64_t min = 0, max = kUnlimited;  // of parts and more together
  int64_t more_counts = 0;            // how many of `more` count towards min, at most
};
// Null where it cannot have so many. Throws unsupported where it needs too many rules.
ExprPtr counted_list(JsonRules& rules, const Counted& list, const std::string& place);

}  // namespace rbee::grammar
