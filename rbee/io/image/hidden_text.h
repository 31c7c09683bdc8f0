#pragma once
// Settings in the pixels themselves ("stealth pnginfo"), which NovelAI and extensions of
// AUTOMATIC1111 write.

#include <optional>
#include <string>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// The text in the lowest bits of opacity, or of red, green and blue, down the columns from the
// left, the highest bit of a byte first: one of four marks, the number of bits, the text, which
// gzip (RFC 1952) may have compressed. Without bytes that are no UTF-8. Nothing where there is none
// or not all of it, and where it has more than 1 MiB.
std::optional<std::string> hidden_text(const Pixels& pixels);

}  // namespace rbee::io
