#pragma once
// The functions of Go's templates, and those that Ollama adds.

#include <span>
#include <string_view>

#include "rbee/text/go_template/value.h"

namespace rbee::text::go {

// Counts work and memory of one rendering. Throws invalid_argument when it is used up.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual void step(int64_t count) = 0;
  // Bytes that a value takes, which also count as work.
  virtual void take(int64_t bytes) = 0;
};

struct Function {
  std::string_view name;
  size_t least = 0, most = 0;  // arguments
  Value (*run)(std::span<const Value> args, Meter& meter);
};

// `and` and `or`, which evaluate no more than they need, have no `run`. Null: there is no such one.
const Function* find_function(std::string_view name);

// Bytes that the value takes when it is printed or written as JSON, at least.
int64_t size_of(const Value& value, Meter& meter);
std::string measured_json(const Value& value, Meter& meter);
std::string measured_print(const Value& value, Meter& meter);

}  // namespace rbee::text::go
