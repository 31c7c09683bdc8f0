#pragma once
// Text of files and requests, as a terminal may show it.

#include <string>
#include <string_view>

namespace rbee {

// Escapes what steers a terminal or hides what a line says: control characters (C0, DEL, C1) and
// bytes that are no UTF-8 as \x1b, marks of writing direction as \u202e. A name cannot end a line.
std::string printable_line(std::string_view text);
// The same, but line feeds and tabs stay.
std::string printable_text(std::string_view text);

}  // namespace rbee
