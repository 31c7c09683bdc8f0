// The functions every template can call.

#include <array>
#include <cstdio>
#include <ctime>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // of the sandbox
constexpr size_t kMaxTimeText = 4096;  // bytes

int64_t range_size(int64_t start, int64_t stop, int64_t step) {
  const bool empty = step > 0 ? start >= stop : start <= stop;
  if (empty) return 0;
  const uint64_t span = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t pace = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = (span - 1) / pace + 1;
  if (count > kMaxRange) raise("range too big: more than ", kMaxRange, " items");
  return static_cast<int64_t>(count);
}

Value range(Runtime& runtime, const Value& /*self*/, const Args& args) {
  const Bound given("range", args, {"start", "stop", "step"}, 1);
  const bool only_stop = !given.has(1);
  const int64_t start = only_stop ? 0 : given.integer(0, 0);
  const int64_t stop = given.integer(only_stop ? 0 : 1, 0);
  const int64_t step = given.integer(2, 1);
  if (step == 0) raise("range() arg 3 must not be zero");
  const int64_t size = range_size(start, stop, step);
  runtime.step(size);
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(size));
  int64_t value = start;
  for (int64_t i = 0; i < size; ++i) {
    items.emplace_back(value);
    if (i + 1 < size) value += step;
  }
  const auto payload = static_cast<int64_t>(items.capacity() * sizeof(Value));
  return Value(runtime.heap().make<Range>(payload, start, stop, step, std::move(items)));
}

// Python's dict(mapping or pairs, name=value ...).
void fill(Runtime& runtime, Dict& out, const Args& args) {
  if (args.positional.size() > 1) raise("dict expected at most 1 argument");
  if (args.positional.size() == 1 && args.positional[0].is(Kind::dict)) {
    for (const auto& [key, value] : args.positional[0].dict().entries) {
      runtime.set(out, key, value);
    }
  } else if (args.positional.size() == 1) {
    for (const Value& item : items_of(runtime, args.positional[0])) {
      const std::vector<Value> pair = items_of(runtime, item);
      if (pair.size() != 2) raise("dict() needs pairs");
      runtime.set(out, pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : args.named) runtime.set(out, runtime.text(name), value);
}

Value dict(Runtime& runtime, const Value& /*self*/, const Args& args) {
  Dict* out = runtime.dict();
  fill(runtime, *out, args);
  return Value(static_cast<const Dict*>(out));
}

Value make_namespace(Runtime& runtime, const Value& /*self*/, const Args& args) {
  auto* out = runtime.heap().make<Namespace>(0);
  fill(runtime, out->attributes, args);
  for (const auto& entry : out->attributes.entries) {
    const bool is_text = entry.first.is(Kind::text);
    if (is_text && entry.first.text().bytes.starts_with('_')) {
      raise("a namespace cannot store the underscore-prefixed attribute '",
            entry.first.text().bytes, "'");
    }
  }
  return Value(out);
}

class Cycler : public Custom {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}

  std::string describe() const override { return "<Cycler>"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
    const Value self{static_cast<Custom*>(this)};
    if (name == "current") return items_[position_];
    if (name == "next") return make_function(runtime, name, next, self);
    if (name == "reset") return make_function(runtime, name, reset, self);
    return std::nullopt;
  }

 private:
  static Value next(Runtime& /*runtime*/, const Value& self, const Args& /*args*/) {
    auto& cycler = static_cast<Cycler&>(self.custom());
    const Value current = cycler.items_[cycler.position_];
    cycler.position_ = (cycler.position_ + 1) % cycler.items_.size();
    return current;
  }
  static Value reset(Runtime& /*runtime*/, const Value& self, const Args& /*args*/) {
    static_cast<Cycler&>(self.custom()).position_ = 0;
    return {};
  }

  std::vector<Value> items_;
  size_t position_ = 0;
};

Value cycler(Runtime& runtime, const Value& /*self*/, const Args& args) {
  if (args.positional.empty()) raise("at least one item has to be provided");
  if (!args.named.empty()) raise("cycler() takes no keyword arguments");
  const auto payload = static_cast<int64_t>(args.positional.size() * sizeof(Value));
  return Value(static_cast<Custom*>(runtime.heap().make<Cycler>(payload, args.positional)));
}

// Empty at its first call, the separator at all others.
class Joiner : public Custom {
 public:
  explicit Joiner(Value separator) : separator_(separator) {}

  std::string describe() const override { return "<Joiner>"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Args& args) override {
    const Bound given("joiner", args, {});
    if (used_) return separator_;
    used_ = true;
    return runtime.text("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value joiner(Runtime& runtime, const Value& /*self*/, const Args& args) {
  const Bound given("joiner", args, {"sep"});
  const Value separator = given.has(0) ? *given[0] : runtime.text(", ");
  return Value(static_cast<Custom*>(runtime.heap().make<Joiner>(0, separator)));
}

Value raise_exception(Runtime& runtime, const Value& /*self*/, const Args& args) {
  const Bound given("raise_exception", args, {"message"}, 1);
  Failure failure(Code::invalid_argument, {}, to_text(runtime, *given[0]));
  failure.verbatim = true;
  throw failure;
}

// datetime.now().strftime(format), in local time.
Value strftime_now(Runtime& runtime, const Value& /*self*/, const Args& args) {
  const Bound given("strftime_now", args, {"format"}, 1);
  // A mark in front tells an empty result from one that is too long.
  const std::string format = cat("x", given.text(0, ""));
  if (format.find('\0') != std::string::npos) raise("strftime_now(): a null in the format");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, kMaxTimeText> buffer;
  const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  if (size == 0) raise("strftime_now(): the result is longer than ", kMaxTimeText, " bytes");
  return runtime.text(std::string(buffer.data() + 1, size - 1));
}

constexpr std::array<NamedNative, 7> kFunctions = {{
    {"range", range},
    {"dict", dict},
    {"namespace", make_namespace},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
}};

}  // namespace

std::span<const NamedNative> global_functions() {
  return kFunctions;
}

}  // namespace rbee::text::jinja
