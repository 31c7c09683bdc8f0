#pragma once
// The variables `loop` and a macro's own value.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/text/template/interpreter.h"

namespace rbee::text::jinja {

// Iterates lazily: it evaluates the loop's `if` for an item only when its turn comes, because the
// body may have changed the result.
class Loop : public Custom {
 public:
  Loop(Interpreter& interpreter, const ForStmt& stmt, Scope* outer, std::vector<Value> items,
       int64_t depth0)
      : interpreter_(interpreter),
        stmt_(stmt),
        outer_(outer),
        items_(std::move(items)),
        depth0_(depth0) {}

  // The next item; nothing at the end.
  std::optional<Value> advance();

  std::string describe() const override { return "<LoopContext>"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Args& args) override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

 private:
  std::optional<Value> pull();
  const std::optional<Value>& peek();
  int64_t length();
  std::optional<Value> neighbour(Runtime& runtime, std::string_view name);
  static Value cycle(Runtime& runtime, const Value& self, const Args& args);
  static Value changed(Runtime& runtime, const Value& self, const Args& args);

  Interpreter& interpreter_;
  const ForStmt& stmt_;
  Scope* outer_;
  std::vector<Value> items_;
  size_t next_ = 0;
  bool filtered_ = false;  // the rest of items_ has passed the `if`
  bool peeked_ = false;
  std::optional<Value> after_;
  std::optional<Value> current_;
  std::optional<Value> before_;
  std::optional<Value> last_changed_;
  std::optional<int64_t> length_;
  int64_t index0_ = -1;
  int64_t depth0_;
};

class Macro : public Custom {
 public:
  Macro(Interpreter& interpreter, const MacroStmt& stmt, Scope* closure, std::string_view name)
      : interpreter_(interpreter), stmt_(stmt), closure_(closure), name_(name) {}

  std::string describe() const override { return cat("<Macro '", name_, "'>"); }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Args& args) override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

 private:
  Interpreter& interpreter_;
  const MacroStmt& stmt_;
  Scope* closure_;
  std::string_view name_;
};

}  // namespace rbee::text::jinja
