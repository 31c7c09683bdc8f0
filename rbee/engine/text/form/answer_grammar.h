#pragma once
// The form of a whole answer as one grammar: reasoning, function calls, and the content under the
// request's constraint. See docs/design/tools.md.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/text/output/output_format.h"

namespace rbee::engine {

// The required form of an answer; equal forms have equal grammars.
struct AnswerForm {
  enum class Reasoning : uint8_t { none, may_come, is_open };

  Constraint constraint;  // of the content
  text::OutputFormat format;
  Reasoning reasoning = Reasoning::none;
  std::vector<Tool> tools;  // the model may call these
  bool call_required = false;
  bool parallel_calls = true;
  friend bool operator==(const AnswerForm&, const AnswerForm&) = default;

  // Whether the answer needs a grammar.
  bool binds() const;
};

// The form that the request asks for, without `reasoning`, which depends on the prompt. Throws
// unsupported if there are tools and the model's call format is unknown.
AnswerForm form_of(const TextRequest& request, const text::OutputFormat& format);
AnswerForm::Reasoning reasoning_after(std::string_view prompt, const text::OutputFormat& format);

// The grammar writes a special token as this byte and its name. No text has the byte, so the token
// cannot come inside a text, nor be spelled out.
inline constexpr char kSpecialByte = '\xFF';

// is_special: whether a mark is one of the model's special tokens. tokens: for a grammar in GBNF.
// Throws as to_grammar() does, and unsupported if a strict function's schema or a text's form
// cannot be enforced.
grammar::Grammar answer_grammar(const AnswerForm& form,
                                const std::function<bool(std::string_view)>& is_special,
                                const grammar::TokenReader& tokens = {});

}  // namespace rbee::engine
