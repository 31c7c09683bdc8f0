#include <immintrin.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/linear/tile_config_amx.h"

namespace {

// All tiles whole and zero; four sums hide the latency of the products.
void set_whole_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.shape(tile, kTileRows, kTileBytes);
  set_tiles(config);  // which also clears them
}

}  // namespace

namespace rbee::cpu {

double peak_int8_amx(int64_t rounds) {
  set_whole_tiles();
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  release_tiles();
  return static_cast<double>(rounds) * 4 * 16 * 16 * 64 * 2;
}

double peak_bf16_amx(int64_t rounds) {
  set_whole_tiles();
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  release_tiles();
  return static_cast<double>(rounds) * 4 * 16 * 16 * 32 * 2;
}

}  // namespace rbee::cpu
