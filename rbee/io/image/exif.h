#pragma once
// What an Exif block says (Exif 2.32): how a camera was held (tag 0x0112), and turning a picture by
// it; a comment (tag 0x9286), where AUTOMATIC1111 keeps settings.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// 1 to 8 as TIFF 6.0 numbers them; 1, which changes nothing, also for what is no Exif block or not
// whole. block: with "Exif" before it, as in a JPEG file's APP1 segment, or without, as in a PNG
// file's eXIf chunk; WebP files' EXIF chunks have both.
int exif_orientation(std::string_view block);
// 5 to 8.
bool swaps_sides(int orientation);

// The picture upright: mirrored, turned, or both. Takes as much memory again.
Pixels upright(Pixels pixels, int orientation);

// The comment in a block, with or without "Exif" before it, as UTF-8: from UTF-16 of either order
// of bytes ("UNICODE"), or from what stands behind "ASCII" or no mark at all, as sound_text() reads
// it. Nothing where there is none, or not whole, or in JIS.
std::optional<std::string> exif_comment(std::string_view block);
// The texts of a camera's picture, by their tags. ComfyUI puts a WebP file's graph into the model,
// its extensions into the others.
enum class ExifText : uint16_t { description = 0x010E, maker = 0x010F, model = 0x0110 };
std::optional<std::string> exif_text(std::string_view block, ExifText tag);
// Bytes that should be UTF-8: without those that are none, without blanks and zeros around them.
// Nothing where there is nothing else.
std::optional<std::string> sound_text(std::string_view bytes);
// A block, without "Exif" before it, that has this comment alone, as UTF-16. What is no UTF-8 in
// `text` becomes U+FFFD.
std::string exif_of_comment(std::string_view text);

}  // namespace rbee::io
