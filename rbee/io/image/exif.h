#pragma once
// What an Exif block says (Exif 2.32): how a camera was held (tag 0x0112), and turning a picture by
// it; a comment (tag 0x9286), where AUTOMATIC1111 keeps settings.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// 1 to 8 as TIFF 6.0 numbers them; 1, which changes nothing, also for what is no Exif block or not
// whole. marker: an APP1 segment's bytes, behind its length.
int exif_orientation(std::string_view marker);

// The picture upright: mirrored, turned, or both; orientations 5 to 8 swap width and height.
Pixels upright(Pixels pixels, int orientation);

// The comment in a block, with or without "Exif" before it, as UTF-8: from UTF-16 in the block's
// order of bytes ("UNICODE"), or from ASCII. Nothing where there is none, or not whole.
std::optional<std::string> exif_comment(std::string_view block);
// A block, without "Exif" before it, that has this comment alone, as UTF-16. What is no UTF-8 in
// `text` becomes U+FFFD.
std::string exif_of_comment(std::string_view text);

}  // namespace rbee::io
