#pragma once
// Runs a template: one Interpreter per rendering, with all of its memory.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/text/template/ast.h"
#include "rbee/text/template/runtime.h"

namespace rbee::text::jinja {

// Variables set inside a loop, a macro or a `with`. The outermost ones are in Interpreter::root_.
struct Scope : Object {
  explicit Scope(Scope* outer) : parent(outer) {}
  Scope* parent;  // null: the root is next
  std::vector<std::pair<Symbol, Value>> variables;
  bool captured = false;  // a macro keeps it, so it cannot be reused
};

enum class Flow : uint8_t { normal, loop_break, loop_continue };

class Interpreter {
 public:
  // `code` must outlive the interpreter.
  Interpreter(const Template& code, const TemplateLimits& limits);

  Runtime& runtime() { return runtime_; }
  // Sets an outermost variable; does nothing if the template does not name it.
  void define(std::string_view name, const Value& value);
  std::string run();

  // For macros and loops, which call back to render their bodies.
  Value call_macro(const MacroStmt& macro, Scope* closure, const Args& args);
  std::string render_loop(const ForStmt& loop, Scope* outer, const Value& iterable, int64_t depth0);
  bool loop_accepts(const ForStmt& loop, Scope* outer, const Value& item);

 private:
  // Statements (interpreter.cc).
  Flow run_body(const Body& body);
  Flow run_statement(const Stmt& stmt);
  void output(const OutputStmt& stmt);
  Flow run_for(const ForStmt& stmt, const Value& iterable, int64_t depth0);
  Flow run_if(const IfStmt& stmt);
  Flow run_scope(Scope* scope, const Body& body);
  Flow run_captured(const Body& body);
  Flow run_set_block(const SetBlockStmt& stmt);
  void run_macro(const MacroStmt& stmt);
  void run_call_block(const CallBlockStmt& stmt);
  Flow run_filter_block(const FilterBlockStmt& stmt);
  Flow run_with(const WithStmt& stmt);
  void write(const Value& value);
  std::string capture(const Body& body, Flow& flow);

  // Variables (interpreter.cc).
  Value lookup(Symbol symbol);
  void assign(Symbol symbol, const Value& value);
  void assign_target(const Expr& target, const Value& value);
  Scope* new_scope(Scope* parent);
  Scope* fresh_scope(Scope* used, Scope* parent);
  Value make_macro(const MacroStmt& stmt);
  void bind_parameters(const MacroStmt& macro, const Args& args);
  void bind_extras(const MacroStmt& macro, const Args& args, std::vector<bool> used);
  std::optional<Symbol> symbol_of(std::string_view name) const;

  // Expressions (evaluate.cc).
  Value evaluate(const Expr& expr);
  Value dispatch(const Expr& expr);
  Value sequence(const SequenceExpr& expr);
  Value dict(const DictExpr& expr);
  Value unary(const UnaryExpr& expr);
  Value binary_op(const BinaryExpr& expr);
  Value concat(const ConcatExpr& expr);
  Value comparison(const CompareExpr& expr);
  Value conditional(const ConditionalExpr& expr);
  Value item(const ItemExpr& expr);
  Value apply(const ApplyExpr& expr);
  Value call(const CallExpr& expr, const Value* caller);
  Args arguments(const Arguments& arguments);

  const Template& code_;
  Runtime runtime_;
  std::vector<std::optional<Value>> root_;  // by symbol
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  Value captured_;  // of the block that a filter is applied to
};

}  // namespace rbee::text::jinja
