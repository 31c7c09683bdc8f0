#pragma once
// The parts of JSON texts (RFC 8259) as a grammar. Internal to the folder.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// White space between the parts of a text is limited, so that a model cannot write it for ever:
// none, a space, or a new line with up to 20 spaces or tabs. Numbers have up to 20 digits before
// the point and after it.
class JsonRules {
 public:
  ExprPtr space();
  ExprPtr value();
  ExprPtr object();  // any
  ExprPtr array();   // any
  ExprPtr string();  // any
  ExprPtr number();
  ExprPtr integer();
  // One rule for each count, shared by all numbers.
  ExprPtr digits(int64_t least, int64_t most);
  static ExprPtr boolean();
  static ExprPtr null();

  // A string of characters, each by string_char().
  static ExprPtr quoted(ExprPtr characters);
  // Any one character of a JSON string, escaped or not.
  static ExprPtr string_char();
  // One of these characters, escaped only if JSON requires it.
  static ExprPtr string_chars(const std::vector<CharRange>& ranges);
  // key, colon and value. key: the JSON of a string.
  ExprPtr pair(ExprPtr key, ExprPtr value);
  // Any string but these names.
  ExprPtr other_key(const std::vector<std::string>& names);
  // [ first ... , more ... ] with min to max of `more`.
  ExprPtr list(const std::vector<ExprPtr>& first, const ExprPtr& more, int64_t min, int64_t max);

  // Adds a rule with this body and gives a call of it.
  ExprPtr add(std::string name, ExprPtr body);
  int32_t reserve(std::string name);
  void define(int32_t rule, ExprPtr body);
  Grammar finish(ExprPtr root);

 private:
  ExprPtr once(std::optional<int32_t>& rule, const char* name, ExprPtr (JsonRules::*body)());
  ExprPtr space_body();
  ExprPtr value_body();
  ExprPtr object_body();
  ExprPtr array_body();
  ExprPtr string_body();
  ExprPtr number_body();
  ExprPtr integer_body();

  Grammar grammar_;
  std::map<std::pair<int64_t, int64_t>, ExprPtr> digits_;
  std::optional<int32_t> space_, value_, object_, array_, string_, number_, integer_;
};

}  // namespace rbee::grammar
