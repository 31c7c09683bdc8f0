#pragma once
// Runs a VAE on pictures that may be larger than memory: whole, or in overlapping tiles that fade
// into each other.

#include <vector>

#include "rbee/models/image/parts.h"

namespace rbee::engine {

struct TileOptions {
  // Use tiles at once; else only if there is no memory for the whole picture.
  bool tiled = false;
  int64_t tile = 64;  // latents on a side; halved while memory runs out, down to twice the overlap
  int64_t overlap = 16;
  models::Between between;  // called between a decoder's blocks
  // Of the picture. Tiles then also overlap across its ends.
  Circular circular = {};
};

// latent: (1, h, w, channels), as for Vae::decode(). Returns the picture's (h * scale, w * scale,
// 3) values. Throws out_of_memory if the smallest tile is too large, and what the VAE throws.
std::vector<float> decode_in_tiles(const models::Vae& vae, const Tensor& latent,
                                   const TileOptions& options = {});

// image: (1, height, width, 3), as for Vae::encode(). Throws as decode_in_tiles().
models::LatentDistribution encode_in_tiles(const models::Vae& vae, const Tensor& image,
                                           const TileOptions& options = {});

}  // namespace rbee::engine
