#pragma once
// Text by code points, as in Python. All texts are valid UTF-8 (checked on input).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::text::jinja {

int64_t count_code_points(std::string_view utf8);
// Byte offset of the first invalid sequence; npos if there is none.
size_t find_invalid_utf8(std::string_view text);
// The code point at byte `position`; moves `position` after it.
char32_t next_code_point(std::string_view utf8, size_t& position);
// The start of the code point that ends before byte `position`.
size_t previous_start(std::string_view utf8, size_t position);
void append_utf8(std::string& out, char32_t code_point);
// Byte offset of the code point number `index` (clamped to the end).
size_t byte_offset(std::string_view utf8, int64_t index);

// str.isspace, and the sets of str.isalpha ... of one code point.
bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alnum(char32_t c);
bool is_upper(char32_t c);  // upper case, not title case
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);
// Letters, digits and _: \w of a pattern; and what may start an identifier.
bool is_word(char32_t c);
bool is_identifier_start(char32_t c);

// Full case mappings of str.upper, lower, capitalize and title.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string to_title(std::string_view text);

// First occurrence of `needle` in linear time; npos if there is none.
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
size_t rfind_text(std::string_view text, std::string_view needle);

// str.strip: white space, or any of the code points of `chars`.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                       bool right);
// str.splitlines.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

}  // namespace rbee::text::jinja
