#pragma once
// Makes text from files and requests safe to show on a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace rbee {

// Escapes control characters (C0, DEL, C1) and bytes that are not UTF-8, as \x1b, and marks of
// writing direction, as \u202e. So a name can neither steer the terminal, nor hide what a line
// says, nor end a line.
std::string printable_line(std::string_view text);
// The same, but keeps line feeds and tabs.
std::string printable_text(std::string_view text);
// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
size_t first_character_bytes(std::string_view text);

}  // namespace rbee
