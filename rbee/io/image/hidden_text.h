#pragma once
// Reads settings that NovelAI and extensions of AUTOMATIC1111 hide in the pixels ("stealth
// pnginfo").

#include <optional>
#include <string>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// The text in the lowest bits of opacity, or of red, green and blue, down the columns from the
// left, the highest bit of a byte first: one of four marks, the number of bits, and the text,
// perhaps compressed by gzip (RFC 1952). Drops invalid UTF-8. Nothing if there is no whole text or
// it is longer than 1 MiB.
std::optional<std::string> hidden_text(const Pixels& pixels);

}  // namespace rbee::io
