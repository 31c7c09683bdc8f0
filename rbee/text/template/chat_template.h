#pragma once
// Chat templates: the Jinja2 language as Hugging Face transformers sets it up (immutable sandbox,
// trim_blocks, lstrip_blocks, break/continue, its own tojson, strftime_now, raise_exception and
// {% generation %}), bounded in steps, memory and output, without access to files.
// Language: https://jinja.palletsprojects.com/en/stable/templates/

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rbee::text {

struct Message {
  std::string role;
  std::string content;
  std::string extra_json;  // more fields ("tool_calls", "name" ...) as a JSON object; may be empty
};

struct TemplateLimits {
  int64_t max_steps = 2'000'000;           // nodes evaluated plus items and 32-byte pieces handled
  int64_t max_output_bytes = 16 << 20;     // of the rendered text
  int64_t max_memory_bytes = 256LL << 20;  // all values one rendering makes, freed at its end
  int max_depth = 100;                     // nesting of source and variables; calls of macros
  int64_t max_source_bytes = 1 << 20;
};

namespace jinja {
struct Template;
}

// Immutable; many threads may render it at once.
class ChatTemplate {
 public:
  // Throws Error(invalid_argument) with line and column, Error(unsupported) for include, import and
  // extends.
  explicit ChatTemplate(std::string_view source, TemplateLimits limits = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `variables_json` is an object such as {"messages": [...], "add_generation_prompt": true,
  // "bos_token": "<s>", "tools": [...]}. Throws Error(invalid_argument) with the line; if the
  // template calls raise_exception(), the error has the template's own words.
  std::string render(std::string_view variables_json) const;

  // The same for a list of messages; `extra_variables_json` (may be empty) is an object whose
  // fields become variables too.
  std::string render(std::span<const Message> messages, bool add_generation_prompt,
                     std::string_view bos, std::string_view eos,
                     std::string_view extra_variables_json = {}) const;

 private:
  TemplateLimits limits_;
  std::unique_ptr<const jinja::Template> template_;
};

}  // namespace rbee::text
