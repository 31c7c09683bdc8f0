#pragma once
// Base64 (RFC 4648, section 4), alone or in a data: URL (RFC 2397).

#include <string>
#include <string_view>

namespace rbee::io {

std::string encode_base64(std::string_view bytes);
// Adds it to `out`, with no copy of its own.
void append_base64(std::string& out, std::string_view bytes);
// Skips line breaks, blanks and a "data:...;base64," prefix, and accepts missing padding and the
// alphabet of section 5 ("-", "_"). Throws invalid_argument in the name of `field` for anything
// else.
std::string decode_base64(std::string_view text, std::string_view field);

}  // namespace rbee::io
