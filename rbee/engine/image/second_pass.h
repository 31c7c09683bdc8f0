#pragma once
// Between two passes: how large the second one is, and what it starts from.

#include "rbee/engine/image/repaint.h"
#include "rbee/engine/image/settings.h"

namespace rbee::engine {

// Names and their aliases, in the order of UpscalerKind's values; networks have names of their own.
std::string_view name(UpscalerKind upscaler);
// Case does not matter but in a network's name; empty = the first. Throws invalid_argument in the
// name of hires.upscaler.
UpscalerKind parse_upscaler(std::string_view text, std::span<const UpscalerInfo> networks);

struct Size {
  int32_t width = 0, height = 0;
};
// Of the pictures that a second pass makes; of a first pass's size. What is not asked for by itself
// is a multiple of `step`.
Size second_size(const HiresFix& hires, const Size& first, int32_t step);

// A part of what is enlarged to cover `to`, in its middle. Any unit.
struct Cover {
  Size whole;
  Region part;  // of it
};
Cover cover(const Size& from, const Size& to);

}  // namespace rbee::engine
