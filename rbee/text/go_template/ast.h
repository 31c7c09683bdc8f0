#pragma once
// A parsed template of Go.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rbee/text/go_template/value.h"

namespace rbee::text::go {

struct Pipe;
struct Function;

// What a command begins with, or an argument: its base, and the fields after it.
struct Operand {
  enum class Base : uint8_t { dot, variable, literal, function, pipe };
  Base base = Base::dot;
  std::string variable;  // with its "$"
  Value literal;
  const Function* function = nullptr;
  std::shared_ptr<const Pipe> pipe;  // in parentheses
  std::vector<std::string> fields;   // ".A.B"
};

struct Command {
  std::vector<Operand> args;  // the first is what is called, if it is a function
};

struct Pipe {
  int line = 0;
  std::vector<std::string> declared;  // "$x", or two of a range
  bool assigns = false;               // "=": they are there
  std::vector<Command> commands;      // each gets the result of the one before as its last argument
};

struct Node;
using Nodes = std::vector<Node>;

struct Node {
  enum class Type : uint8_t { text, action, branch, loop, with, call, stop, next };
  Type type = Type::text;
  int line = 0;
  std::string text;  // of text; the name of a called template
  std::optional<Pipe> pipe;
  std::shared_ptr<const Nodes> body, otherwise;  // may be null
};

struct Template {
  std::shared_ptr<const Nodes> root;
  std::vector<std::pair<std::string, std::shared_ptr<const Nodes>>> named;  // {{ define }}
};

}  // namespace rbee::text::go
