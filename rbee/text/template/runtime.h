#pragma once
// What filters, tests, methods and functions may use while rendering: memory, the step counter, and
// Python's operations on values.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/text/template/chat_template.h"
#include "rbee/text/template/value.h"

namespace rbee::text::jinja {

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// A filter, a test, a method or a function: `self` is the value before | . or `is`.
using Native = Value (*)(Runtime&, const Value& self, const Args&);

struct NamedNative {
  std::string_view name;
  Native function;
};

class Runtime {
 public:
  explicit Runtime(const TemplateLimits& limits)
      : limits_(limits), heap_(limits.max_memory_bytes) {}

  Heap& heap() { return heap_; }
  const TemplateLimits& limits() const { return limits_; }

  // Counts work; throws if the template has used up its steps.
  void step(int64_t count = 1);
  // Counts work on `count` bytes of text.
  void step_bytes(size_t count) { step(static_cast<int64_t>(count / 32)); }

  Value text(std::string utf8, bool safe = false);
  Value text(std::string_view utf8) { return text(std::string(utf8)); }
  Value text(const char* utf8) { return text(std::string(utf8)); }
  Value sequence(Form form, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(Form::list, std::move(items)); }
  Value tuple(std::vector<Value> items) { return sequence(Form::tuple, std::move(items)); }
  Value generator(std::vector<Value> items) { return sequence(Form::generator, std::move(items)); }
  Value undefined(std::string message);
  Dict* dict() { return heap_.make<Dict>(0); }
  // dict.set and dict.find that also count their memory and work.
  void set(Dict& dict, const Value& key, const Value& value);
  const Value* find(const Dict& dict, const Value& key);

  // One level of recursion; Depth is its guard.
  void enter();
  void leave() { --depth_; }

  int32_t line = 0;  // of the current node

 private:
  void step_key(const Value& key);

  TemplateLimits limits_;
  Heap heap_;
  int64_t steps_ = 0;
  int depth_ = 0;
};

class Depth {
 public:
  explicit Depth(Runtime& runtime) : runtime_(runtime) { runtime_.enter(); }
  ~Depth() { runtime_.leave(); }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Runtime& runtime_;
};

// A C++ function as a value, or a method bound to its object.
Value make_function(Runtime& runtime, std::string_view name, Native function, Value self = {});

// Arguments by the names of a signature. Throws for too many, unknown or repeated arguments, and if
// one of the first `required` is missing.
class Bound {
 public:
  Bound(std::string_view function, const Args& args, std::vector<std::string_view> names,
        size_t required = 0);
  Bound(std::string_view, Args&&, std::vector<std::string_view>, size_t = 0) = delete;

  // Null if not given.
  const Value* operator[](size_t i) const { return values_[i]; }
  bool has(size_t i) const { return values_[i] != nullptr; }
  Value value_or(size_t i, Value fallback) const { return has(i) ? *values_[i] : fallback; }
  // Each throws if the argument has another type.
  int64_t integer(size_t i, int64_t fallback) const;
  bool flag(size_t i, bool fallback) const;
  std::string_view text(size_t i, std::string_view fallback) const;
  bool is_none(size_t i) const { return !has(i) || values_[i]->is(Kind::none); }

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

// Search the tables; null if there is no such name.
Native find_filter(std::string_view name);
Native find_test(std::string_view name);
Native find_method(const Value& self, std::string_view name);

}  // namespace rbee::text::jinja
