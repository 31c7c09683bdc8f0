#pragma once
// Between two passes: the second pass's size and starting picture.

#include "rbee/engine/image/repaint.h"
#include "rbee/engine/image/settings.h"

namespace rbee::engine {

// Names and their aliases, in the order of UpscalerKind's values; networks have names of their own.
std::string_view name(UpscalerKind upscaler);
// Ignores case except in a network's name; empty = the first. Throws invalid_argument naming
// hires.upscaler.
UpscalerKind parse_upscaler(std::string_view text, std::span<const UpscalerInfo> networks);

struct Size {
  int32_t width = 0, height = 0;
};
// The size of a second pass's pictures, given the first pass's. Sides that the request does not set
// are multiples of `step`.
Size second_size(const HiresFix& hires, const Size& first, int32_t step);

// An enlarged picture that covers `to`, and its middle part of that size. Any unit.
struct Cover {
  Size whole;
  Region part;  // of it
};
Cover cover(const Size& from, const Size& to);
// The middle part, of the size `to`, of the picture resized in this way.
io::Pixels covered(io::Pixels picture, const Size& to, io::Resampler how);

}  // namespace rbee::engine
