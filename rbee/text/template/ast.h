#pragma once
// A parsed template. The Template owns the nodes, which point at each other, so a deep tree is
// freed without recursion.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/text/template/runtime.h"
#include "rbee/text/template/value.h"

namespace rbee::text::jinja {

using Symbol = int32_t;  // index of a name in Template::names

enum class ExprType : uint8_t {
  constant,
  name,
  sequence,
  dict,
  unary,
  binary,
  concat,
  compare,
  conditional,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
  captured,
  space_field,
};

struct Node {
  virtual ~Node() = default;
  int32_t line = 0;
};

struct Expr : Node {
  explicit Expr(ExprType kind) : type(kind) {}
  ExprType type;
};

struct ConstantExpr : Expr {
  explicit ConstantExpr(Value v) : Expr(ExprType::constant), value(v) {}
  Value value;
};

struct NameExpr : Expr {
  explicit NameExpr(Symbol s) : Expr(ExprType::name), symbol(s) {}
  Symbol symbol;
};

struct SequenceExpr : Expr {
  SequenceExpr(Form f, std::vector<const Expr*> values)
      : Expr(ExprType::sequence), form(f), items(std::move(values)) {}
  Form form;
  std::vector<const Expr*> items;
};

struct DictExpr : Expr {
  DictExpr() : Expr(ExprType::dict) {}
  std::vector<std::pair<const Expr*, const Expr*>> entries;
};

enum class UnaryOp : uint8_t { negate, plus, logical_not };

struct UnaryExpr : Expr {
  UnaryExpr(UnaryOp o, const Expr* e) : Expr(ExprType::unary), op(o), operand(e) {}
  UnaryOp op;
  const Expr* operand;
};

enum class BinaryOp : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  logical_and,
  logical_or,
};

struct BinaryExpr : Expr {
  BinaryExpr(BinaryOp o, const Expr* l, const Expr* r)
      : Expr(ExprType::binary), op(o), left(l), right(r) {}
  BinaryOp op;
  const Expr* left;
  const Expr* right;
};

struct ConcatExpr : Expr {
  explicit ConcatExpr(std::vector<const Expr*> values)
      : Expr(ExprType::concat), items(std::move(values)) {}
  std::vector<const Expr*> items;
};

enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge, in, not_in };

struct CompareExpr : Expr {
  explicit CompareExpr(const Expr* e) : Expr(ExprType::compare), first(e) {}
  const Expr* first;
  std::vector<std::pair<CompareOp, const Expr*>> rest;
};

struct ConditionalExpr : Expr {
  ConditionalExpr(const Expr* t, const Expr* y, const Expr* n)
      : Expr(ExprType::conditional), test(t), yes(y), no(n) {}
  const Expr* test;
  const Expr* yes;
  const Expr* no;  // null: undefined
};

struct AttributeExpr : Expr {
  AttributeExpr(const Expr* o, std::string_view n)
      : Expr(ExprType::attribute), object(o), name(n) {}
  const Expr* object;
  std::string_view name;
};

struct ItemExpr : Expr {
  ItemExpr(const Expr* o, const Expr* k) : Expr(ExprType::item), object(o), key(k) {}
  const Expr* object;
  const Expr* key;  // a SliceExpr for a slice
};

struct SliceExpr : Expr {
  SliceExpr() : Expr(ExprType::slice) {}
  const Expr* start = nullptr;
  const Expr* stop = nullptr;
  const Expr* step = nullptr;
};

struct Arguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string_view, const Expr*>> named;
  const Expr* list = nullptr;  // *list
  const Expr* dict = nullptr;  // **dict
};

struct CallExpr : Expr {
  explicit CallExpr(const Expr* f) : Expr(ExprType::call), callee(f) {}
  const Expr* callee;
  Arguments arguments;
};

// A filter or a test.
struct ApplyExpr : Expr {
  ApplyExpr(ExprType kind, const Expr* e) : Expr(kind), operand(e) {}
  const Expr* operand;
  std::string name;
  Native function = nullptr;  // null: no such filter, which is an error when it is reached
  Arguments arguments;
};

// The text that a filter or set block has just rendered.
struct CapturedExpr : Expr {
  CapturedExpr() : Expr(ExprType::captured) {}
};

// Target of {% set space.field = ... %}.
struct SpaceFieldExpr : Expr {
  SpaceFieldExpr(Symbol s, std::string_view f) : Expr(ExprType::space_field), space(s), field(f) {}
  Symbol space;
  std::string_view field;
};

enum class StmtType : uint8_t {
  output,
  for_loop,
  if_else,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with,
  scope,
  loop_break,
  loop_continue,
};

struct Stmt : Node {
  explicit Stmt(StmtType kind) : type(kind) {}
  StmtType type;
};

using Body = std::vector<const Stmt*>;

struct OutputStmt : Stmt {
  OutputStmt() : Stmt(StmtType::output) {}
  std::vector<const Expr*> items;
};

struct ForStmt : Stmt {
  ForStmt() : Stmt(StmtType::for_loop) {}
  const Expr* target = nullptr;
  const Expr* iterable = nullptr;
  const Expr* filter = nullptr;
  bool recursive = false;
  Body body;
  Body otherwise;
};

struct IfStmt : Stmt {
  IfStmt() : Stmt(StmtType::if_else) {}
  std::vector<std::pair<const Expr*, Body>> branches;
  Body otherwise;
};

struct SetStmt : Stmt {
  SetStmt() : Stmt(StmtType::set) {}
  const Expr* target = nullptr;
  const Expr* value = nullptr;
};

struct SetBlockStmt : Stmt {
  SetBlockStmt() : Stmt(StmtType::set_block) {}
  const Expr* target = nullptr;
  const Expr* filter = nullptr;  // on a CapturedExpr
  Body body;
};

// A macro, or the body of a call block (which is one named "caller").
struct MacroStmt : Stmt {
  MacroStmt() : Stmt(StmtType::macro) {}
  Symbol name = -1;
  std::vector<std::pair<Symbol, const Expr*>> parameters;  // null: no default
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Body body;
};

struct CallBlockStmt : Stmt {
  CallBlockStmt() : Stmt(StmtType::call_block) {}
  const CallExpr* call = nullptr;
  const MacroStmt* caller = nullptr;
};

struct FilterBlockStmt : Stmt {
  FilterBlockStmt() : Stmt(StmtType::filter_block) {}
  const Expr* filter = nullptr;  // on a CapturedExpr
  Body body;
};

struct WithStmt : Stmt {
  WithStmt() : Stmt(StmtType::with) {}
  std::vector<std::pair<const Expr*, const Expr*>> assignments;
  Body body;
};

// {% block %} and {% generation %}: the body in a scope of its own.
struct ScopeStmt : Stmt {
  explicit ScopeStmt(bool root) : Stmt(StmtType::scope), from_root(root) {}
  bool from_root;  // sees the outermost variables only
  Body body;
};

struct JumpStmt : Stmt {
  explicit JumpStmt(StmtType kind) : Stmt(kind) {}
};

struct Template {
  explicit Template(const TemplateLimits& limits) : constants(limits.max_memory_bytes) {}

  std::string source;  // normalized; names and data point into it
  Heap constants;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::string_view> names;
  std::map<std::string, Symbol, std::less<>> symbols;
  Body body;

  Symbol intern(std::string_view name) {
    const auto [entry, added] = symbols.try_emplace(std::string(name), Symbol(names.size()));
    if (added) names.push_back(entry->first);
    return entry->second;
  }
};

}  // namespace rbee::text::jinja
