#pragma once
// Reads Exif blocks (Exif 2.32): the orientation of the camera (tag 0x0112), by which pictures are
// turned, and the comment (tag 0x9286), where AUTOMATIC1111 keeps settings.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// 1 to 8 as TIFF 6.0 numbers them; 1 (no change) if it is not a whole Exif block. block: may begin
// with "Exif", as in a JPEG file's APP1 segment, or not, as in a PNG file's eXIf chunk; WebP files
// have both kinds.
int exif_orientation(std::string_view block);
// 5 to 8.
bool swaps_sides(int orientation);

// The picture upright: mirrored, turned, or both. Takes as much memory again.
Pixels upright(Pixels pixels, int orientation);

// The comment in a block, with or without "Exif" before it, as UTF-8. Reads UTF-16 of either byte
// order after "UNICODE", and other text, after "ASCII" or no mark, as sound_text() does. Nothing if
// there is no whole comment or it is in JIS.
std::optional<std::string> exif_comment(std::string_view block);
// The texts that cameras write, by tag. In WebP files, ComfyUI writes its graph as the model, and
// its extensions use the other two.
enum class ExifText : uint16_t { description = 0x010E, maker = 0x010F, model = 0x0110 };
std::optional<std::string> exif_text(std::string_view block, ExifText tag);
// The bytes without invalid UTF-8, and without blanks and zeros at both ends. Nothing if nothing is
// left.
std::optional<std::string> sound_text(std::string_view bytes);
// A block, without "Exif" before it, with only this comment, as UTF-16. Invalid UTF-8 in `text`
// becomes U+FFFD.
std::string exif_of_comment(std::string_view text);

}  // namespace rbee::io
