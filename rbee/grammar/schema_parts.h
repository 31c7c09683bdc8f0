#pragma once
// Grammars of objects, arrays, strings and numbers, for schemas without alternatives
// (SchemaLogic::ways). Internal to the folder.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "rbee/grammar/json_rules.h"
#include "rbee/grammar/schema_logic.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {

// What they need from the converter.
class SchemaBuilder {
 public:
  virtual ~SchemaBuilder() = default;
  // Throws NothingFits if no value is valid.
  virtual ExprPtr convert(const Schema& schema, const std::string& place, int depth) = 0;
  // The same, but null instead.
  ExprPtr convert_if_any(const Schema& schema, const std::string& place, int depth);

  JsonRules& rules() { return rules_; }
  SchemaLogic& logic() { return logic_; }
  // Remaining work for sets of texts (text_set.h).
  int64_t& text_work() { return text_work_; }
  // Cached sets of texts of formats, by name.
  std::map<std::string, TextSet>& texts_of_formats() { return texts_of_formats_; }
  // Calls `make` once for all schemas of one type with equal values of these keywords.
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

// The number of minLength and its kin; 0 if the schema does not have it.
int64_t least_of(const Schema& schema, const char* keyword, const std::string& place);
// The number of maxLength and its kin; kUnlimited if the schema does not have it or no answer can
// reach it.
int64_t most_of(const Schema& schema, const char* keyword);
// The characters of any string, each written in one way, without the quotes.
ExprPtr any_plain_string();
// The valid JSON strings in this form.
ExprPtr plain_strings(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                      int depth);

// Parts in this order with commas between, each at most once.
struct Counted {
  struct Part {
    ExprPtr body;
    bool required = false;
    std::vector<size_t> needs = {};  // other parts, without which it cannot come
  };
  std::vector<Part> parts;
  ExprPtr more;                       // null, or a part that may follow and repeat
  int64_t min = 0, max = kUnlimited;  // of parts and more together
  int64_t more_counts = 0;            // how many of `more` count towards min, at most
};
// Null if the counts are impossible. Throws unsupported if it needs too many rules.
ExprPtr counted_list(JsonRules& rules, const Counted& list, const std::string& place);

}  // namespace rbee::grammar
