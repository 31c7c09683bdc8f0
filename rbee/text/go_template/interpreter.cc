#include "rbee/text/go_template/interpreter.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/text/go_template/functions.h"

namespace rbee::text::go {
namespace {

constexpr int64_t kPiece = 32;  // bytes that count as a step

enum class After : uint8_t { goes_on, stops, next };

class Interpreter final : public Meter {
 public:
  Interpreter(const Template& code, const TemplateLimits& limits) : code_(code), limits_(limits) {}

  std::string run(const Nodes& nodes, const Value& data) {
    try {
      variables_.emplace_back("$", data);
      (void)walk(nodes, data);
      return std::move(out_);
    } catch (const Error& error) {
      if (!line_) throw;
      fail(error.code(), error.op(), "line ", line_, ": ", error.message());
    }
  }

  void step(int64_t count) override {
    steps_ += count;
    check(steps_ <= limits_.max_steps, "template", "it takes more than ", limits_.max_steps,
          " steps");
  }
  void take(int64_t bytes) override {
    step(bytes / kPiece);
    memory_ += bytes;
    check(memory_ <= limits_.max_memory_bytes, "template", "its values take more than ",
          limits_.max_memory_bytes, " bytes");
  }

 private:
  // Variables that a block makes end with it; nesting is counted.
  class Scope {
   public:
    explicit Scope(Interpreter& in) : in_(in), size_(in.variables_.size()) {
      ++in.depth_;
      if (in.depth_ > in.limits_.max_depth) {
        --in.depth_;
        fail(Code::invalid_argument, "template", "nested more than ", in.limits_.max_depth,
             " deep");
      }
    }
    ~Scope() {
      --in_.depth_;
      in_.variables_.erase(in_.variables_.begin() + static_cast<ptrdiff_t>(size_),
                           in_.variables_.end());
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interpreter& in_;
    const size_t size_;
  };

  void write(std::string_view text) {
    step(static_cast<int64_t>(text.size()) / kPiece);
    const auto size = static_cast<int64_t>(out_.size() + text.size());
    check(size <= limits_.max_output_bytes, "template", "its text has more than ",
          limits_.max_output_bytes, " bytes");
    out_ += text;
  }

  After walk(const Nodes& nodes, const Value& dot) {
    for (const Node& node : nodes) {
      step(1);
      line_ = node.line;
      const After after = walk(node, dot);
      if (after != After::goes_on) return after;
    }
    return After::goes_on;
  }

  After walk(const Node& node, const Value& dot) {
    switch (node.type) {
      case Node::Type::text:
        write(node.text);
        return After::goes_on;
      case Node::Type::action: {
        const Value value = result(*node.pipe, dot);
        if (!node.pipe->declared.empty()) return After::goes_on;
        write(value.kind == Kind::nil ? "<no value>" : measured_print(value, *this));
        return After::goes_on;
      }
      case Node::Type::stop:
        return After::stops;
      case Node::Type::next:
        return After::next;
      case Node::Type::call:
        call(node, dot);
        return After::goes_on;
      case Node::Type::loop:
        return loop(node, dot);
      case Node::Type::branch:
      case Node::Type::with:
        break;
    }
    const Scope scope(*this);
    const Value value = result(*node.pipe, dot);
    const bool yes = is_true(value);
    const auto& body = yes ? node.body : node.otherwise;
    if (!body) return After::goes_on;
    return walk(*body, yes && node.type == Node::Type::with ? value : dot);
  }

  void call(const Node& node, const Value& dot) {
    const Value data = node.pipe ? result(*node.pipe, dot) : Value{};
    const auto at = std::ranges::find(code_.named, node.text,
                                      [](const auto& one) { return std::string_view(one.first); });
    const Scope scope(*this);
    auto outer = std::exchange(variables_, {{"$", data}});
    (void)walk(*at->second, data);
    variables_ = std::move(outer);
  }

  After loop(const Node& node, const Value& dot) {
    const Scope scope(*this);
    const Value value = evaluate(*node.pipe, dot);
    bool any = false;
    const auto once = [&](const Value& key, const Value& item) {
      any = true;
      step(1);
      const Scope body(*this);
      assign_items(*node.pipe, key, item);
      return walk(*node.body, item) != After::stops;
    };
    if (value.kind == Kind::list) {
      for (size_t i = 0; i < value.items->size(); ++i) {
        if (!once(of_integer(static_cast<int64_t>(i)), (*value.items)[i])) break;
      }
    } else if (value.kind == Kind::map && !value.is_struct) {
      for (const auto& [name, item] : *value.fields) {
        if (!once(of_text(name), item)) break;
      }
    } else if (value.kind == Kind::integer) {
      for (int64_t i = 0; i < value.integer; ++i) {
        if (!once(of_integer(i), of_integer(i))) break;
      }
    } else if (value.kind != Kind::nil) {
      line_ = node.line;
      fail(Code::invalid_argument, "template", "range cannot go over ", type_name(value));
    }
    return any || !node.otherwise ? After::goes_on : walk(*node.otherwise, dot);
  }

  // One variable is the item, two are its place and the item.
  void assign_items(const Pipe& pipe, const Value& key, const Value& item) {
    const auto& names = pipe.declared;
    if (names.empty()) return;
    const auto set = [&](const std::string& name, const Value& value) {
      pipe.assigns ? assign(name, value) : void(variables_.emplace_back(name, value));
    };
    if (names.size() == 2) set(names[0], key);
    set(names.back(), item);
  }

  void assign(const std::string& name, const Value& value) { *variable(name) = value; }

  // The parser has seen that it is there.
  Value* variable(const std::string& name) {
    const auto at = std::find_if(variables_.rbegin(), variables_.rend(),
                                 [&](const auto& one) { return one.first == name; });
    check(at != variables_.rend(), "template", "undefined variable ", name);
    return &at->second;
  }

  // With its declarations.
  Value result(const Pipe& pipe, const Value& dot) {
    Value value = evaluate(pipe, dot);
    for (const std::string& name : pipe.declared) {
      pipe.assigns ? assign(name, value) : void(variables_.emplace_back(name, value));
    }
    return value;
  }

  Value evaluate(const Pipe& pipe, const Value& dot) {
    line_ = pipe.line;
    Value value;
    bool piped = false;
    for (const Command& command : pipe.commands) {
      value = run(command, dot, piped ? &value : nullptr);
      piped = true;
    }
    return value;
  }

  // last: the result of the command before; null: it is the first.
  Value run(const Command& command, const Value& dot, const Value* last) {
    step(1);
    const Operand& first = command.args.front();
    if (first.function == nullptr) return value_of(first, dot);
    if (first.function->run == nullptr) return logical(command, dot, last);
    std::vector<Value> args;
    for (size_t i = 1; i < command.args.size(); ++i) {
      args.push_back(value_of(command.args[i], dot));
    }
    if (last != nullptr) args.push_back(*last);
    return first.function->run(args, *this);
  }

  // `and` gives its first value that is not true, `or` its first that is; else the last.
  Value logical(const Command& command, const Value& dot, const Value* last) {
    const bool wanted = command.args.front().function->name == "or";
    Value value;
    for (size_t i = 1; i < command.args.size(); ++i) {
      value = value_of(command.args[i], dot);
      if (is_true(value) == wanted) return value;
    }
    return last != nullptr ? *last : value;
  }

  Value value_of(const Operand& operand, const Value& dot) {
    step(1);
    Value value;
    switch (operand.base) {
      case Operand::Base::dot:
        value = dot;
        break;
      case Operand::Base::variable:
        value = *variable(operand.variable);
        break;
      case Operand::Base::literal:
        return operand.literal;
      case Operand::Base::function:
        return operand.function->run({}, *this);
      case Operand::Base::pipe: {
        const Scope scope(*this);
        value = evaluate(*operand.pipe, dot);
      }
    }
    for (const std::string& name : operand.fields) value = field(value, name);
    return value;
  }

  // A map lacks a field without an error, but what is not there has none.
  Value field(const Value& value, const std::string& name) {
    step(1);
    check(value.kind != Kind::nil, "template", "there is nothing that could have a field ", name);
    const Value* found = value.find(name);
    if (found != nullptr) return *found;
    const bool lax = value.kind == Kind::map && !value.is_struct;
    check(lax, "template", "there is no field ", name, " in a ",
          value.is_struct ? "struct" : type_name(value));
    return {};
  }

  const Template& code_;
  const TemplateLimits& limits_;
  std::vector<std::pair<std::string, Value>> variables_;
  std::string out_;
  int64_t steps_ = 0, memory_ = 0;
  int depth_ = 0, line_ = 0;
};

}  // namespace

std::string render(const Template& code, const Nodes& nodes, const Value& data,
                   const TemplateLimits& limits) {
  return Interpreter(code, limits).run(nodes, data);
}

}  // namespace rbee::text::go
