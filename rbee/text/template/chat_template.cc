#include "rbee/text/template/chat_template.h"

#include <utility>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/text/go_template/go_template.h"
#include "rbee/text/template/failure.h"
#include "rbee/text/template/interpreter.h"
#include "rbee/text/template/json.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/parser.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text {
namespace {

using jinja::Dict;
using jinja::Interpreter;
using jinja::Runtime;
using jinja::Value;

constexpr std::string_view kOp = "chat template";
constexpr int64_t kMaxMessage = 500;  // code points of an error; it may quote the template

[[noreturn]] void report(const jinja::Failure& failure, int32_t line) {
  if (failure.verbatim) fail(failure.code, kOp, failure.what());
  const jinja::Position at = failure.position;
  std::string_view message = failure.what();
  message = message.substr(0, jinja::byte_offset(message, kMaxMessage));
  if (at.line > 0) {
    fail(failure.code, kOp, "line ", at.line, ", column ", at.column, ": ", message);
  }
  if (line > 0) fail(failure.code, kOp, "line ", line, ": ", message);
  fail(failure.code, kOp, message);
}

// Runs `define`, which sets the variables, and then the template.
template <typename Define>
std::string run(const jinja::Template& code, const TemplateLimits& limits, Define define) {
  Interpreter interpreter(code, limits);
  try {
    Runtime& runtime = interpreter.runtime();
    for (const auto& [name, function] : jinja::global_functions()) {
      interpreter.define(name, jinja::make_function(runtime, name, function));
    }
    define(interpreter, runtime);
    return interpreter.run();
  } catch (const jinja::Failure& failure) {
    report(failure, interpreter.runtime().line);
  }
}

void define_all(Interpreter& interpreter, const Dict& variables) {
  for (const auto& [name, value] : variables.entries) interpreter.define(name.text().bytes, value);
}

// JSON and messages come from outside: their bytes are checked here.
Value checked_text(Runtime& runtime, std::string_view text, std::string_view what) {
  if (jinja::find_invalid_utf8(text) != std::string_view::npos) {
    jinja::raise(what, " is not valid UTF-8");
  }
  return runtime.text(text);
}

Value message_value(Runtime& runtime, const Message& message) {
  Dict* out = runtime.dict();
  runtime.set(*out, runtime.text("role"), checked_text(runtime, message.role, "a message's role"));
  runtime.set(*out, runtime.text("content"),
              checked_text(runtime, message.content, "a message's content"));
  if (!message.extra_json.empty()) {
    const Dict& extra = parse_json_object(runtime, message.extra_json, "a message's extra fields");
    for (const auto& [key, value] : extra.entries) runtime.set(*out, key, value);
  }
  return Value(static_cast<const Dict*>(out));
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, TemplateLimits limits) : limits_(limits) {
  if (GoTemplate::is_one(source)) {
    go_ = std::make_unique<const GoTemplate>(source, limits);
    return;
  }
  try {
    template_ = jinja::parse(source, limits);
  } catch (const jinja::Failure& failure) {
    report(failure, 0);
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(std::string_view variables_json) const {
  if (go_) return go_->render(variables_json);
  return run(*template_, limits_, [&](Interpreter& interpreter, Runtime& runtime) {
    define_all(interpreter, parse_json_object(runtime, variables_json, "the variables"));
  });
}

std::string ChatTemplate::render(std::span<const Message> messages, bool add_generation_prompt,
                                 std::string_view bos, std::string_view eos,
                                 std::string_view extra_variables_json) const {
  if (go_) return go_->render(messages, bos, extra_variables_json);
  return run(*template_, limits_, [&](Interpreter& interpreter, Runtime& runtime) {
    std::vector<Value> list;
    for (const Message& message : messages) list.push_back(message_value(runtime, message));
    interpreter.define("messages", runtime.list(std::move(list)));
    interpreter.define("add_generation_prompt", Value(add_generation_prompt));
    interpreter.define("bos_token", checked_text(runtime, bos, "bos"));
    interpreter.define("eos_token", checked_text(runtime, eos, "eos"));
    if (extra_variables_json.empty()) return;
    define_all(interpreter,
               parse_json_object(runtime, extra_variables_json, "the extra variables"));
  });
}

}  // namespace rbee::text
