#pragma once
// Splits a template of Go into text and the tokens of its actions. Language:
// https://pkg.go.dev/text/template

#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/go_template/value.h"

namespace rbee::text::go {

enum class TokenType : uint8_t {
  text,
  open,      // {{
  close,     // }}
  word,      // a keyword, or a function's name
  field,     // .Name
  variable,  // $ or $name
  dot,       // .
  literal,   // a text, a number, a letter
  mark,      // ( ) | , := =
  space,     // between arguments
};

struct Token {
  TokenType type = TokenType::text;
  int line = 1;
  std::string text;  // of a field and a variable with its first letter
  Value literal{};
};

// White space next to "{{- " and " -}}" is gone, and so are comments. Throws invalid_argument with
// the line.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace rbee::text::go
