#pragma once
// Reads one function call in JSON while the text arrives. Internal to the folder.

#include <functional>
#include <string>
#include <string_view>

#include "rbee/text/output/python_literals.h"
#include "rbee/text/output/stage.h"

namespace rbee::text {

// Finds the end of a JSON value by its brackets and strings. Does not check the rest.
class JsonEnd {
 public:
  enum class At : uint8_t { inside, last, past };
  // last: the value ends with this byte; past: it ended before this byte.
  At next(char c);
  bool begun() const { return begun_; }

 private:
  int depth_ = 0;
  bool begun_ = false, in_string_ = false, escaped_ = false;
  char quote_ = 0;  // that ends the string; Python has two
};

// The value of "arguments": emits an object while it arrives, and decodes a string that holds an
// object at its end. Python's literals become JSON's.
class ArgumentsReader {
 public:
  enum class Status : uint8_t { more, done };
  // Reads up to the value's end. Emits by `emit`.
  Status read(std::string_view& text, const std::function<void(std::string_view)>& emit);
  // Call this at the end of the text.
  void finish(const std::function<void(std::string_view)>& emit);

 private:
  JsonEnd end_;
  PythonLiterals literals_;
  std::string scalar_;
  bool is_scalar_ = false, done_ = false;
};

// {"name" or "function": ..., "arguments" or "parameters": {...}}, in any order, other members
// skipped.
class CallReader {
 public:
  enum class Status : uint8_t { more, done, broken };
  // functions: the names that count; null: all do, and members of any name are skipped.
  explicit CallReader(const std::vector<OutputFunction>* functions = nullptr)
      : functions_(functions) {}

  // Takes the object from the front of `text`; last: no more comes. broken: no call has begun, and
  // raw() is what was taken. more: the text is used up.
  Status read_all(std::string_view& text, bool last, Output& out);
  const std::string& raw() const { return raw_; }

 private:
  enum class At : uint8_t { open, key, in_key, colon, name, arguments, other, behind, over };
  Status step(std::string_view& text, Output& out);
  Status step_outside(char c, Output& out);
  Status step_token(std::string_view& text, Output& out);
  Status finish(Output& out);
  Status begin_value();
  Status end_name(Output& out);
  Status behind_value(char c, Output& out);
  void emit(std::string_view json, Output& out);

  const std::vector<OutputFunction>* functions_;
  At at_ = At::open;
  JsonEnd end_;
  std::string token_;  // a key, or the name
  std::string early_;  // arguments in front of the name
  std::string raw_;    // until the call has begun
  ArgumentsReader arguments_;
  bool begun_ = false, any_arguments_ = false;
};

// The text of a JSON string; nothing if it is not a JSON string.
std::optional<std::string> json_string(std::string_view json);

}  // namespace rbee::text
