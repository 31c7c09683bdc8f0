#pragma once
// Pictures enlarged by a network.

#include "rbee/engine/image_canvas.h"
#include "rbee/models/image/upscaler.h"

namespace rbee::engine {

struct UpscaleOptions {
  // Pixels of the small picture on a tile's side, halved down to twice the overlap while memory
  // runs out, and those that neighbours share; multiples of 8.
  int64_t tile = 192;
  int64_t overlap = 16;
  models::Between between;  // called between a network's blocks
};

// scale() times as large; the opacity is left out. Throws NotFinite, out_of_memory where the
// smallest tile is too large, and what `between` throws.
io::Pixels upscaled(const models::RrdbNet& network, const io::Pixels& picture, Device& device,
                    const UpscaleOptions& options = {});

}  // namespace rbee::engine
