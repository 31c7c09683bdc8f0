#pragma once
// Pictures enlarged by a network.

#include "rbee/engine/api/image.h"
#include "rbee/engine/image/canvas.h"
#include "rbee/models/image/upscaler.h"

namespace rbee::engine {

struct UpscaleOptions {
  // Pixels of the small picture on a tile's side, halved down to twice the overlap while memory
  // runs out, and those that neighbours share; multiples of 8.
  int64_t tile = 192;
  int64_t overlap = 16;
  models::Between between;                             // called between a network's layers
  std::function<void(const TileProgress&)> tile_done;  // may be empty
};

// Throws invalid_argument in the name of `field` where the network would make more of the sides.
void check_enlarged(std::string_view field, const models::Upscaler& network, int32_t width,
                    int32_t height);

// scale() times as large; the opacity is left out. Throws NotFinite, out_of_memory where the
// smallest tile is too large, and what the two functions throw.
io::Pixels upscaled(const models::Upscaler& network, const io::Pixels& picture, Device& device,
                    const UpscaleOptions& options = {});

}  // namespace rbee::engine
