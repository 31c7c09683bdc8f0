#pragma once
// Cuts a template into tokens and applies its rules for white space: trim_blocks, lstrip_blocks,
// the signs - and + of tags, and raw blocks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/value.h"

namespace rbee::text::jinja {

enum class TokenType : uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,  // with its quotes
  integer,
  floating,
  symbol,  // operators and brackets
  end,
};

struct Token {
  TokenType type;
  Position position;
  std::string_view text;  // a part of the source

  bool is_symbol(std::string_view symbol) const {
    return type == TokenType::symbol && text == symbol;
  }
  bool is_name(std::string_view name) const { return type == TokenType::name && text == name; }
};

// Turns line ends into \n and drops the last one. Throws for invalid UTF-8.
std::string normalize_source(std::string_view source);

// `source` must be normalized and outlive the tokens. The last token is `end`.
std::vector<Token> tokenize(std::string_view source);

// The text of a string token, escapes resolved.
std::string decode_string(const Token& token);
// `heap` holds an integer beyond 64 bits.
Value decode_integer(const Token& token, Heap& heap);
double decode_float(const Token& token);

}  // namespace rbee::text::jinja
