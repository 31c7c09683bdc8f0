#pragma once
// The shapes of AMX tiles. A thread sets them before it multiplies and releases them afterwards, so
// that the system does not save 8 KiB more for it.

#include <immintrin.h>

#include <cstdint>

namespace {

constexpr int kTileRows = 16;
constexpr int kTileBytes = 64;  // of a row

// The operand of ldtilecfg.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void shape(int tile, int64_t tile_rows, int64_t bytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};

void set_tiles(const TileConfig& config) {
  // The compiler does not see which bytes the tile instructions read and write.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

void release_tiles() {
  _tile_release();
  asm volatile("" : : : "memory");
}

}  // namespace
