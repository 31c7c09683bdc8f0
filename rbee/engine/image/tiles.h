#pragma once
// A VAE over pictures that are larger than memory: whole, or in tiles that overlap and are faded
// into each other.

#include <vector>

#include "rbee/models/image/parts.h"

namespace rbee::engine {

struct TileOptions {
  // From the start; else only where the memory for the whole picture is not to be had.
  bool tiled = false;
  int64_t tile = 64;  // latents on a side; halved down to twice the overlap while memory runs out
  int64_t overlap = 16;
  models::Between between;  // called between a decoder's blocks
  // Of the picture. Tiles then also overlap across its ends.
  Circular circular = {};
};

// latent: (1, h, w, channels) as Vae::decode() takes it. The picture's (h * scale, w * scale, 3)
// values. Throws out_of_memory when the smallest tile is too large, and what the VAE throws.
std::vector<float> decode_in_tiles(const models::Vae& vae, const Tensor& latent,
                                   const TileOptions& options = {});

// image: (1, height, width, 3) as Vae::encode() takes it. Throws as decode_in_tiles().
models::LatentDistribution encode_in_tiles(const models::Vae& vae, const Tensor& image,
                                           const TileOptions& options = {});

}  // namespace rbee::engine
