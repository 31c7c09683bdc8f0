#include "rbee/text/template/loop.h"

#include "rbee/text/template/failure.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {

std::optional<Value> Loop::pull() {
  while (next_ < items_.size()) {
    const Value item = items_[next_++];
    if (filtered_ || stmt_.filter == nullptr) return item;
    if (interpreter_.loop_accepts(stmt_, outer_, item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (!peeked_) after_ = pull();
  peeked_ = true;
  return after_;
}

std::optional<Value> Loop::advance() {
  std::optional<Value> next = peeked_ ? after_ : pull();
  peeked_ = false;
  if (!next) return next;
  ++index0_;
  before_ = current_;
  current_ = next;
  return next;
}

int64_t Loop::length() {
  if (length_) return *length_;
  std::vector<Value> rest;
  while (const auto item = pull()) rest.push_back(*item);
  length_ = index0_ + 1 + (peeked_ && after_ ? 1 : 0) + static_cast<int64_t>(rest.size());
  items_ = std::move(rest);
  next_ = 0;
  filtered_ = true;
  return *length_;
}

Value Loop::call(Runtime& runtime, const Args& args) {
  if (!stmt_.recursive) raise("the loop must have the 'recursive' marker to be called");
  const Bound given("loop", args, {"iterable"}, 1);
  return runtime.text(interpreter_.render_loop(stmt_, outer_, *given[0], depth0_ + 1));
}

std::optional<Value> Loop::neighbour(Runtime& runtime, std::string_view name) {
  if (name == "last") return Value(!peek().has_value());
  if (name == "nextitem") {
    return peek() ? *peek() : runtime.undefined("there is no next item");
  }
  if (name == "previtem") {
    return before_ ? *before_ : runtime.undefined("there is no previous item");
  }
  return std::nullopt;
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  if (name == "index") return Value(index0_ + 1);
  if (name == "index0") return Value(index0_);
  if (name == "first") return Value(index0_ == 0);
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index0_);
  if (name == "revindex0") return Value(length() - index0_ - 1);
  if (name == "depth") return Value(depth0_ + 1);
  if (name == "depth0") return Value(depth0_);
  const Value self{static_cast<Custom*>(this)};
  if (name == "cycle") return make_function(runtime, name, cycle, self);
  if (name == "changed") return make_function(runtime, name, changed, self);
  return neighbour(runtime, name);
}

Value Loop::cycle(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const auto& loop = static_cast<const Loop&>(self.custom());
  if (!args.named.empty()) raise("cycle() takes no keyword arguments");
  if (args.positional.empty()) raise("no items for cycling given");
  const auto turn = static_cast<size_t>(std::max<int64_t>(0, loop.index0_));
  return args.positional[turn % args.positional.size()];
}

Value Loop::changed(Runtime& runtime, const Value& self, const Args& args) {
  auto& loop = static_cast<Loop&>(self.custom());
  const Value now = runtime.tuple(args.positional);
  if (loop.last_changed_ && equal(runtime, *loop.last_changed_, now)) return Value(false);
  loop.last_changed_ = now;
  return Value(true);
}

Value Macro::call(Runtime& /*runtime*/, const Args& args) {
  return interpreter_.call_macro(stmt_, closure_, args);
}

std::optional<Value> Macro::attribute(Runtime& runtime, std::string_view name) {
  if (name == "name") return runtime.text(name_);
  if (name == "catch_kwargs") return Value(stmt_.uses_kwargs);
  if (name == "catch_varargs") return Value(stmt_.uses_varargs);
  if (name == "caller") return Value(stmt_.uses_caller);
  return std::nullopt;
}

}  // namespace rbee::text::jinja
