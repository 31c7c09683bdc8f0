#pragma once
// The form of a whole answer as a grammar: its reasoning, its calls of functions, and what its
// constraint asks for. See docs/design/tools.md.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/text/output/output_format.h"

namespace rbee::engine {

// What an answer has to look like; equal forms have equal grammars.
struct AnswerForm {
  enum class Reasoning : uint8_t { none, may_come, is_open };

  Constraint constraint;  // of the content
  text::OutputFormat format;
  Reasoning reasoning = Reasoning::none;
  std::vector<Tool> tools;  // that may be called
  bool call_required = false;
  bool parallel_calls = true;
  friend bool operator==(const AnswerForm&, const AnswerForm&) = default;

  // Whether anything has to be made sure of: else there is no grammar.
  bool binds() const;
};

// What the request asks for; reasoning is for the prompt to say. Throws unsupported where there
// are tools and the model's form of calls is not known.
AnswerForm form_of(const TextRequest& request, const text::OutputFormat& format);
AnswerForm::Reasoning reasoning_behind(std::string_view prompt, const text::OutputFormat& format);

// A special token is spelled by this byte, which no text has, and its name: it cannot come inside
// of a text, nor be spelled out.
inline constexpr char kSpecialByte = '\xFF';

// is_special: whether the mark is a special token of the model. tokens: of a grammar in GBNF.
// Throws as to_grammar() does, and unsupported for a strict function whose schema cannot be held
// to, or for a text's form.
grammar::Grammar answer_grammar(const AnswerForm& form,
                                const std::function<bool(std::string_view)>& is_special,
                                const grammar::TokenReader& tokens = {});

}  // namespace rbee::engine
