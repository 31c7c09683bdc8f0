#pragma once
// Values of Go's templates: those that a chat's data has.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rbee::text::go {

struct Value;
using Items = std::vector<Value>;
using Fields = std::vector<std::pair<std::string, Value>>;

enum class Kind : uint8_t { nil, boolean, integer, number, text, list, map };

// Immutable; copies share what they hold.
struct Value {
  Kind kind = Kind::nil;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::shared_ptr<const std::string> text;
  std::shared_ptr<const Items> items;
  std::shared_ptr<const Fields> fields;  // of a map by name
  bool is_struct = false;                // a map whose other fields are errors
  // What `json` gives, and printing too if the type has a method String; null: made from the value.
  std::shared_ptr<const std::string> json;
  bool prints_json = false;

  // Null if it is no map or has no such field.
  const Value* find(std::string_view name) const;
};

Value of_bool(bool value);
Value of_integer(int64_t value);
Value of_number(double value);
Value of_text(std::string value);
Value of_items(Items items);
// A map is sorted here.
Value of_map(Fields fields);
Value of_struct(Fields fields);

// The type's name in errors.
std::string_view type_name(const Value& value);
// Go's {{ if }}: neither zero nor empty.
bool is_true(const Value& value);
// As Go's fmt prints it with %v.
std::string printed(const Value& value);
// As Go's encoding/json writes it: letters that HTML knows are escaped, names of maps sorted.
std::string json_of(const Value& value);
std::string json_text(std::string_view text);
std::string json_number(double value);

}  // namespace rbee::text::go
