#include "rbee/text/template/runtime.h"

#include <algorithm>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {
namespace {

// Calls of the evaluator per level of nesting that a template may use.
constexpr int64_t kCallsPerLevel = 10;

// std::map's bytes for each entry of a large dict.
constexpr int64_t kIndexEntryBytes = 72;

class Function : public Custom {
 public:
  Function(std::string_view name, Native native, Value self)
      : name_(name), native_(native), self_(self) {}

  std::string describe() const override { return cat("<function ", name_, ">"); }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Args& args) override { return native_(runtime, self_, args); }

 private:
  std::string name_;
  Native native_;
  Value self_;
};

}  // namespace

void Runtime::step(int64_t count) {
  if (count > limits_.max_steps - steps_) {
    raise("the template needs more than ", limits_.max_steps, " steps");
  }
  steps_ += count;
}

Value Runtime::text(std::string utf8, bool safe) {
  step_bytes(utf8.size());
  const auto size = static_cast<int64_t>(utf8.capacity());
  return Value(heap_.make<Text>(size, std::move(utf8), safe));
}

Value Runtime::sequence(Form form, std::vector<Value> items) {
  const auto size = static_cast<int64_t>(items.capacity() * sizeof(Value));
  return Value(heap_.make<Sequence>(size, form, std::move(items)));
}

Value Runtime::undefined(std::string message) {
  const auto size = static_cast<int64_t>(message.size());
  return Value(static_cast<const Undefined*>(heap_.make<Undefined>(size, std::move(message))));
}

void Runtime::set(Dict& dict, const Value& key, const Value& value) {
  step_key(key);
  const size_t size = dict.entries.size();
  dict.set(key, value);
  if (dict.entries.size() == size) return;
  heap_.charge(static_cast<int64_t>(2 * sizeof(Value)) + kIndexEntryBytes);
}

const Value* Runtime::find(const Dict& dict, const Value& key) {
  step_key(key);
  return dict.find(key);
}

void Runtime::step_key(const Value& key) {
  step();
  if (key.is(Kind::text)) step_bytes(key.text().bytes.size());
  if (key.is(Kind::sequence)) step(static_cast<int64_t>(key.sequence().items.size()));
}

void Runtime::enter() {
  if (depth_ >= limits_.max_depth * kCallsPerLevel) {
    raise("the template is nested or calls itself too deeply");
  }
  ++depth_;
}

Value make_function(Runtime& runtime, std::string_view name, Native function, Value self) {
  const auto payload = static_cast<int64_t>(name.size());
  return Value(runtime.heap().make<Function>(payload, name, function, self));
}

Bound::Bound(std::string_view function, const Args& args, std::vector<std::string_view> names,
             size_t required)
    : function_(function), names_(std::move(names)), values_(names_.size()) {
  if (args.positional.size() > names_.size()) {
    raise(function_, "() takes at most ", names_.size(), " arguments, got ",
          args.positional.size());
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) raise(function_, "() has no argument '", name, "'");
    const Value*& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot != nullptr) raise(function_, "() got '", name, "' twice");
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) raise(function_, "() needs the argument '", names_[i], "'");
  }
}

int64_t Bound::integer(size_t i, int64_t fallback) const {
  if (!has(i)) return fallback;
  if (values_[i]->is(Kind::undefined)) raise_undefined(*values_[i]);
  if (values_[i]->is(Kind::wide)) {
    raise(function_, "(): '", names_[i], "' does not fit into 64 bits");
  }
  if (!values_[i]->is_integral()) {
    raise(function_, "() needs an integer as '", names_[i], "', got ", type_name(*values_[i]));
  }
  return values_[i]->integer();
}

bool Bound::flag(size_t i, bool fallback) const {
  return has(i) ? truth(*values_[i]) : fallback;
}

std::string_view Bound::text(size_t i, std::string_view fallback) const {
  if (!has(i)) return fallback;
  if (!values_[i]->is(Kind::text)) {
    raise(function_, "() needs a string as '", names_[i], "', got ", type_name(*values_[i]));
  }
  return values_[i]->text().bytes;
}

}  // namespace rbee::text::jinja
