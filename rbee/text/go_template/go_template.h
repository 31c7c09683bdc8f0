#pragma once
// Chat templates in Go's form, as Ollama's models have them, bounded as those in Jinja are.
// Language: https://pkg.go.dev/text/template; its data: https://docs.ollama.com/modelfile#template

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rbee/text/template/limits.h"
#include "rbee/text/template/message.h"

namespace rbee::text {

namespace go {
struct Template;
}

// Immutable; many threads may render it at once.
class GoTemplate {
 public:
  // Whether an action of it could only be Go's: {{ .Prompt }}, {{ if ... }}, {{- $x := ... }}.
  static bool is_one(std::string_view source);

  // Throws invalid_argument with the line, and names a function or a field that it does not know.
  explicit GoTemplate(std::string_view source, TemplateLimits limits = {});
  ~GoTemplate();
  GoTemplate(GoTemplate&&) noexcept;
  GoTemplate& operator=(GoTemplate&&) noexcept;

  // variables_json: the data, a JSON object.
  std::string render(std::string_view variables_json) const;

  // The chat, for the assistant's next turn. A template without .Messages is rendered for each
  // question with its answer, the last one up to .Response. bos: comes first; empty: nothing does.
  // variables_json (may be empty): an object of which "tools", "enable_thinking" and
  // "reasoning_effort" are read, and "suffix": with it the last message, a user's, is the text
  // before a gap, the suffix the one after it, and other messages have no place.
  std::string render(std::span<const Message> messages, std::string_view bos,
                     std::string_view variables_json = {}) const;

 private:
  TemplateLimits limits_;
  std::unique_ptr<const go::Template> template_;
  bool takes_messages_ = false;
};

}  // namespace rbee::text
