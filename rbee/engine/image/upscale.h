#pragma once
// Enlarges pictures by a network.

#include "rbee/engine/api/image.h"
#include "rbee/engine/image/canvas.h"
#include "rbee/models/image/upscaler.h"

namespace rbee::engine {

struct UpscaleOptions {
  // A tile's side, in pixels of the small picture (halved while memory runs out, down to twice the
  // overlap), and the pixels that neighbours share; multiples of 8.
  int64_t tile = 192;
  int64_t overlap = 16;
  models::Between between;                             // called between a network's layers
  std::function<void(const TileProgress&)> tile_done;  // may be empty
};

// Throws invalid_argument naming `field` if the result would have too many pixels a side.
void check_enlarged(std::string_view field, const models::Upscaler& network, int32_t width,
                    int32_t height);

// scale() times as large, without opacity. Throws NotFinite, out_of_memory if the smallest tile is
// too large, and what the two functions throw.
io::Pixels upscaled(const models::Upscaler& network, const io::Pixels& picture, Device& device,
                    const UpscaleOptions& options = {});

}  // namespace rbee::engine
