#pragma once
// The marks of calls that are written as <function=name> with parameters inside, by model.

#include <string_view>

#include "rbee/text/output/output_format.h"

namespace rbee::text {

struct XmlForm {
  std::string_view open, close;         // around a call; empty: none
  std::string_view function, name_end;  // around a name; no name_end: a line's end, or a mark
  std::string_view parameter, key_end;  // around a key
  std::string_view value;               // behind a key, perhaps on a new line; empty: none
  std::string_view value_end;           // behind a value
  std::string_view function_end;        // of the call
  std::string_view gap;                 // between a value and the marks around it
};

// Of qwen3_coder, seed_oss, minimax_m2 and glm45; null: the format has no such calls.
const XmlForm* xml_form(ToolFormat format);

}  // namespace rbee::text
