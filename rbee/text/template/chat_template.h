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

#include "rbee/text/template/limits.h"
#include "rbee/text/template/message.h"

namespace rbee::text {

namespace jinja {
struct Template;
}

class GoTemplate;

// In Jinja, or in Go's form if an action could only be that (go_template.h). Immutable; many
// threads may render it at once.
class ChatTemplate {
 public:
  // Throws Error(invalid_argument) with line and column, Error(unsupported) for Jinja's include,
  // import and extends.
  explicit ChatTemplate(std::string_view source, TemplateLimits limits = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  bool is_go() const { return go_ != nullptr; }

  // `variables_json` is an object such as {"messages": [...], "add_generation_prompt": true,
  // "bos_token": "<s>", "tools": [...]}. Throws Error(invalid_argument) with the line; if the
  // template calls raise_exception(), the error has the template's own words.
  std::string render(std::string_view variables_json) const;

  // The same for a list of messages; `extra_variables_json` (may be empty) is an object whose
  // fields become variables too. One in Go's form always asks for the next turn, puts `bos` first
  // and has no `eos`.
  std::string render(std::span<const Message> messages, bool add_generation_prompt,
                     std::string_view bos, std::string_view eos,
                     std::string_view extra_variables_json = {}) const;

 private:
  TemplateLimits limits_;
  std::unique_ptr<const jinja::Template> template_;  // null: it is Go's
  std::unique_ptr<const GoTemplate> go_;
};

}  // namespace rbee::text
