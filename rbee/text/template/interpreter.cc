#include "rbee/text/template/interpreter.h"

#include <algorithm>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/loop.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {

Interpreter::Interpreter(const Template& code, const TemplateLimits& limits)
    : code_(code), runtime_(limits), root_(code.names.size()) {}

void Interpreter::define(std::string_view name, const Value& value) {
  if (const auto symbol = symbol_of(name)) root_[static_cast<size_t>(*symbol)] = value;
}

std::optional<Symbol> Interpreter::symbol_of(std::string_view name) const {
  const auto found = code_.symbols.find(name);
  if (found == code_.symbols.end()) return std::nullopt;
  return found->second;
}

std::string Interpreter::run() {
  std::string out;
  out_ = &out;
  run_body(code_.body);
  return out;
}

// ---- Variables ----------------------------------------------------------------------------------

Value Interpreter::lookup(Symbol symbol) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    runtime_.step(static_cast<int64_t>(scope->variables.size() / 16));
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) return value;
    }
  }
  const auto index = static_cast<size_t>(symbol);
  if (root_[index]) return *root_[index];
  return runtime_.undefined(cat("'", code_.names[index], "' is undefined"));
}

void Interpreter::assign(Symbol symbol, const Value& value) {
  if (scope_ == nullptr) {
    root_[static_cast<size_t>(symbol)] = value;
    return;
  }
  runtime_.step(static_cast<int64_t>(scope_->variables.size() / 16));
  for (auto& [name, old] : scope_->variables) {
    if (name != symbol) continue;
    old = value;
    return;
  }
  runtime_.heap().charge(sizeof(scope_->variables[0]));
  scope_->variables.emplace_back(symbol, value);
}

void Interpreter::assign_target(const Expr& target, const Value& value) {
  if (target.type == ExprType::name) {
    return assign(static_cast<const NameExpr&>(target).symbol, value);
  }
  if (target.type == ExprType::space_field) {
    const auto& field = static_cast<const SpaceFieldExpr&>(target);
    const Value space = lookup(field.space);
    if (!space.is(Kind::space)) raise("cannot assign attribute on non-namespace object");
    if (field.field.starts_with('_')) {
      raise("a namespace cannot store the underscore-prefixed attribute '", field.field, "'");
    }
    return runtime_.set(space.space().attributes, runtime_.text(field.field), value);
  }
  const auto& targets = static_cast<const SequenceExpr&>(target).items;
  const std::vector<Value> items = items_of(runtime_, value);
  if (items.size() != targets.size()) {
    raise("cannot unpack ", items.size(), " values into ", targets.size(), " names");
  }
  for (size_t i = 0; i < items.size(); ++i) assign_target(*targets[i], items[i]);
}

Scope* Interpreter::new_scope(Scope* parent) {
  return runtime_.heap().make<Scope>(0, parent);
}

// An empty scope: `used` again when nothing has kept it.
Scope* Interpreter::fresh_scope(Scope* used, Scope* parent) {
  if (used == nullptr || used->captured) return new_scope(parent);
  used->variables.clear();
  return used;
}

// ---- Statements ---------------------------------------------------------------------------------

Flow Interpreter::run_body(const Body& body) {
  const Depth depth(runtime_);
  for (const Stmt* stmt : body) {
    const Flow flow = run_statement(*stmt);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Flow Interpreter::run_statement(const Stmt& stmt) {
  runtime_.step();
  runtime_.line = stmt.line;
  switch (stmt.type) {
    case StmtType::output:
      output(static_cast<const OutputStmt&>(stmt));
      break;
    case StmtType::for_loop: {
      const auto& loop = static_cast<const ForStmt&>(stmt);
      return run_for(loop, evaluate(*loop.iterable), 0);
    }
    case StmtType::if_else:
      return run_if(static_cast<const IfStmt&>(stmt));
    case StmtType::set: {
      const auto& set = static_cast<const SetStmt&>(stmt);
      assign_target(*set.target, evaluate(*set.value));
      break;
    }
    case StmtType::set_block:
      return run_set_block(static_cast<const SetBlockStmt&>(stmt));
    case StmtType::macro:
      run_macro(static_cast<const MacroStmt&>(stmt));
      break;
    case StmtType::call_block:
      run_call_block(static_cast<const CallBlockStmt&>(stmt));
      break;
    case StmtType::filter_block:
      return run_filter_block(static_cast<const FilterBlockStmt&>(stmt));
    case StmtType::with:
      return run_with(static_cast<const WithStmt&>(stmt));
    case StmtType::scope: {
      const auto& scope = static_cast<const ScopeStmt&>(stmt);
      return run_scope(new_scope(scope.from_root ? nullptr : scope_), scope.body);
    }
    case StmtType::loop_break:
      return Flow::loop_break;
    case StmtType::loop_continue:
      return Flow::loop_continue;
  }
  return Flow::normal;
}

void Interpreter::write(const Value& value) {
  append_text(runtime_, *out_, value);
  const int64_t limit = runtime_.limits().max_output_bytes;
  if (static_cast<int64_t>(out_->size()) > limit) {
    raise("the template writes more than ", limit, " bytes");
  }
}

void Interpreter::output(const OutputStmt& stmt) {
  for (const Expr* expr : stmt.items) write(evaluate(*expr));
}

std::string Interpreter::capture(const Body& body, Flow& flow) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  flow = run_body(body);
  out_ = outer;
  return text;
}

Flow Interpreter::run_scope(Scope* scope, const Body& body) {
  Scope* outer = std::exchange(scope_, scope);
  const Flow flow = run_body(body);
  scope_ = outer;
  return flow;
}

bool Interpreter::loop_accepts(const ForStmt& loop, Scope* outer, const Value& item) {
  Scope* saved = std::exchange(scope_, new_scope(outer));
  assign_target(*loop.target, item);
  const bool accepted = truth(evaluate(*loop.filter));
  scope_ = saved;
  return accepted;
}

Flow Interpreter::run_for(const ForStmt& stmt, const Value& iterable, int64_t depth0) {
  Scope* outer = scope_;
  std::vector<Value> items = items_of(runtime_, iterable);
  const auto payload = static_cast<int64_t>(items.size() * sizeof(Value));
  auto* loop = runtime_.heap().make<Loop>(payload, *this, stmt, outer, std::move(items), depth0);
  const auto loop_symbol = symbol_of("loop");
  Scope* scope = nullptr;
  Flow flow = Flow::normal;
  bool ran = false;
  while (flow != Flow::loop_break) {
    const auto item = loop->advance();
    if (!item) break;
    ran = true;
    scope = fresh_scope(scope, outer);
    scope_ = scope;
    if (loop_symbol) assign(*loop_symbol, Value(static_cast<Custom*>(loop)));
    assign_target(*stmt.target, *item);
    flow = run_body(stmt.body);
  }
  scope_ = outer;
  if (ran || stmt.otherwise.empty()) return Flow::normal;
  return run_scope(new_scope(outer), stmt.otherwise);
}

std::string Interpreter::render_loop(const ForStmt& loop, Scope* outer, const Value& iterable,
                                     int64_t depth0) {
  std::string text;
  std::string* out = std::exchange(out_, &text);
  Scope* scope = std::exchange(scope_, outer);
  run_for(loop, iterable, depth0);
  scope_ = scope;
  out_ = out;
  return text;
}

Flow Interpreter::run_if(const IfStmt& stmt) {
  for (const auto& [test, body] : stmt.branches) {
    if (truth(evaluate(*test))) return run_body(body);
  }
  return run_body(stmt.otherwise);
}

// Renders `body` into captured_; a break or continue in it drops the text.
Flow Interpreter::run_captured(const Body& body) {
  Flow flow = Flow::normal;
  Scope* outer = std::exchange(scope_, new_scope(scope_));
  captured_ = runtime_.text(capture(body, flow));
  scope_ = outer;
  return flow;
}

Flow Interpreter::run_set_block(const SetBlockStmt& stmt) {
  const Flow flow = run_captured(stmt.body);
  if (flow == Flow::normal) assign_target(*stmt.target, evaluate(*stmt.filter));
  return flow;
}

Flow Interpreter::run_filter_block(const FilterBlockStmt& stmt) {
  const Flow flow = run_captured(stmt.body);
  if (flow == Flow::normal) write(evaluate(*stmt.filter));
  return flow;
}

Flow Interpreter::run_with(const WithStmt& stmt) {
  Scope* outer = scope_;
  Scope* inner = new_scope(outer);
  for (const auto& [target, expr] : stmt.assignments) {
    const Value value = evaluate(*expr);  // sees the variables outside
    scope_ = inner;
    assign_target(*target, value);
    scope_ = outer;
  }
  return run_scope(inner, stmt.body);
}

// ---- Macros -------------------------------------------------------------------------------------

Value Interpreter::make_macro(const MacroStmt& stmt) {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) {
    scope->captured = true;
  }
  const std::string_view name = code_.names[static_cast<size_t>(stmt.name)];
  return Value(static_cast<Custom*>(runtime_.heap().make<Macro>(0, *this, stmt, scope_, name)));
}

void Interpreter::run_macro(const MacroStmt& stmt) {
  assign(stmt.name, make_macro(stmt));
}

void Interpreter::run_call_block(const CallBlockStmt& stmt) {
  const Value caller = make_macro(*stmt.caller);
  write(call(*stmt.call, &caller));
}

Value Interpreter::call_macro(const MacroStmt& macro, Scope* closure, const Args& args) {
  const int32_t line = runtime_.line;
  Scope* outer = std::exchange(scope_, new_scope(closure));
  bind_parameters(macro, args);
  Flow flow = Flow::normal;
  std::string text = capture(macro.body, flow);
  scope_ = outer;
  runtime_.line = line;
  return runtime_.text(std::move(text));
}

void Interpreter::bind_parameters(const MacroStmt& macro, const Args& args) {
  std::vector<bool> used(args.named.size(), false);
  std::vector<std::optional<Value>> given(macro.parameters.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string_view name = code_.names[static_cast<size_t>(macro.parameters[i].first)];
    if (i < args.positional.size()) {
      given[i] = args.positional[i];
      continue;
    }
    for (size_t n = 0; n < args.named.size(); ++n) {
      if (args.named[n].first != name) continue;
      given[i] = args.named[n].second;
      used[n] = true;
    }
  }
  bind_extras(macro, args, std::move(used));
  // In order: a default may use the parameters before it.
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [symbol, fallback] = macro.parameters[i];
    const std::string_view name = code_.names[static_cast<size_t>(symbol)];
    if (!given[i] && fallback != nullptr) given[i] = evaluate(*fallback);
    if (!given[i]) given[i] = runtime_.undefined(cat("parameter '", name, "' was not provided"));
    assign(symbol, *given[i]);
  }
}

// caller, kwargs and varargs: given to a macro that uses them, errors otherwise.
void Interpreter::bind_extras(const MacroStmt& macro, const Args& args, std::vector<bool> used) {
  const std::string_view name = code_.names[static_cast<size_t>(macro.name)];
  Value caller = runtime_.undefined("no caller defined");
  Dict* kwargs = runtime_.dict();
  for (size_t i = 0; i < args.named.size(); ++i) {
    const auto& [key, value] = args.named[i];
    if (used[i]) continue;
    if (macro.uses_caller && key == "caller") {
      caller = value;
    } else if (macro.uses_kwargs) {
      runtime_.set(*kwargs, runtime_.text(key), value);
    } else {
      raise("macro '", name, "' takes no keyword argument '", key, "'");
    }
  }
  const size_t count = macro.parameters.size();
  if (args.positional.size() > count && !macro.uses_varargs) {
    raise("macro '", name, "' takes not more than ", count, " argument(s)");
  }
  if (macro.uses_caller) assign(*symbol_of("caller"), caller);
  if (macro.uses_kwargs) {
    assign(*symbol_of("kwargs"), Value(static_cast<const Dict*>(kwargs)));
  }
  if (!macro.uses_varargs) return;
  const size_t first = std::min(count, args.positional.size());
  std::vector<Value> rest(args.positional.begin() + static_cast<std::ptrdiff_t>(first),
                          args.positional.end());
  assign(*symbol_of("varargs"), runtime_.tuple(std::move(rest)));
}

}  // namespace rbee::text::jinja
