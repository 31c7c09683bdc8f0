#pragma once
// Products of bf16 with AMX: a tile instruction multiplies 16 rows of x by 32 inputs of a panel,
// whose pairs lie as the tiles want them. Include after bf16_dot.h.

#include "backends/cpu/simd/linear/tile_config_amx.h"

namespace {

constexpr int kTileInputs = 32;
constexpr int kGroup = 3;  // tiles of x that share a tile of the panel

// Tiles 0 to 2 are sums, 3 to 5 rows of x, the last of which has `rows`, 6 and 7 the panel.
void set_bf16_tiles(int tiles, int64_t rows) {
  TileConfig config;
  for (int i = 0; i < tiles; ++i) {
    const int64_t here = i + 1 < tiles ? kTileRows : rows;
    config.shape(i, here, kTileBytes);
    config.shape(kGroup + i, here, kTileBytes);
  }
  config.shape(2 * kGroup, kTileRows, kTileBytes);
  config.shape(2 * kGroup + 1, kTileRows, kTileBytes);
  set_tiles(config);
}

[[gnu::always_inline]] inline int64_t sum_bytes(const panel::PanelProduct& p) {
  return p.y_stride * static_cast<int64_t>(sizeof(float));
}

template <int kTiles>
[[gnu::always_inline]] inline void load_sums(const panel::PanelProduct& p, int64_t row) {
  const int64_t y_bytes = sum_bytes(p);
  const auto* y = reinterpret_cast<const std::byte*>(p.y + row * p.y_stride);
  _tile_zero(0);
  if constexpr (kTiles > 1) _tile_zero(1);
  if constexpr (kTiles > 2) _tile_zero(2);
  if (!p.accumulate) return;
  _tile_loadd(0, y, y_bytes);
  if constexpr (kTiles > 1) _tile_loadd(1, y + kTileRows * y_bytes, y_bytes);
  if constexpr (kTiles > 2) _tile_loadd(2, y + 2 * kTileRows * y_bytes, y_bytes);
}

template <int kTiles>
[[gnu::always_inline]] inline void store_sums(const panel::PanelProduct& p, int64_t row) {
  const int64_t y_bytes = sum_bytes(p);
  auto* y = reinterpret_cast<std::byte*>(p.y + row * p.y_stride);
  _tile_stored(0, y, y_bytes);
  if constexpr (kTiles > 1) _tile_stored(1, y + kTileRows * y_bytes, y_bytes);
  if constexpr (kTiles > 2) _tile_stored(2, y + 2 * kTileRows * y_bytes, y_bytes);
}

template <int kTiles>
void run_group(const panel::PanelProduct& p, int64_t row) {
  load_sums<kTiles>(p, row);
  const int64_t x_bytes = p.x.stride * static_cast<int64_t>(sizeof(uint16_t));
  const auto* x = reinterpret_cast<const std::byte*>(p.x.bf16 + row * p.x.stride);
  const std::byte* weights = p.packed;
  for (int64_t k = 0; k < p.in / kTileInputs; ++k) {
    _tile_loadd(6, weights, kTileBytes);
    _tile_loadd(3, x, x_bytes);
    _tile_dpbf16ps(0, 3, 6);
    if constexpr (kTiles > 1) {
      _tile_loadd(4, x + kTileRows * x_bytes, x_bytes);
      _tile_dpbf16ps(1, 4, 6);
    }
    if constexpr (kTiles > 2) {
      _tile_loadd(5, x + 2 * kTileRows * x_bytes, x_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    x += kTileBytes;
    weights += kTileRows * kTileBytes;
  }
  store_sums<kTiles>(p, row);
}

template <int kTiles>
struct Tiles {
  static constexpr int kCount = kTiles;
};

// All rows: group(p, row, Tiles<n>) multiplies n tiles of them, from `row` on.
template <typename Group>
[[gnu::always_inline]] inline void run_tiles(const panel::PanelProduct& p, Group group) {
  constexpr int64_t kGroupRows = kGroup * kTileRows;
  int64_t row = 0;
  if (p.rows >= kGroupRows) set_bf16_tiles(kGroup, kTileRows);
  for (; row + kGroupRows <= p.rows; row += kGroupRows) group(p, row, Tiles<kGroup>{});
  if (const int64_t rest = p.rows - row; rest > 0) {
    const auto tiles = static_cast<int>((rest + kTileRows - 1) / kTileRows);
    set_bf16_tiles(tiles, rest - (tiles - 1) * kTileRows);
    if (tiles == 1) group(p, row, Tiles<1>{});
    if (tiles == 2) group(p, row, Tiles<2>{});
    if (tiles == 3) group(p, row, Tiles<3>{});
  }
  release_tiles();
}

// All rows with as many inputs as fill tiles.
void run_bf16_tiles(const panel::PanelProduct& p) {
  run_tiles(p, [](const panel::PanelProduct& product, int64_t row, auto tiles) {
    run_group<tiles.kCount>(product, row);
  });
}

// Pairs for the inputs that do not fill tiles.
void run_bf16_rest(const panel::PanelProduct& p) {
  const int64_t whole = p.in / kTileInputs * kTileInputs;
  if (whole == p.in) return;
  panel::PanelProduct rest = p;
  rest.in = (p.in - whole + 1) / 2 * 2;
  rest.accumulate = p.accumulate || whole > 0;
  rest.x.bf16 += whole;
  rest.packed += whole * panel::kPanelRows * static_cast<int64_t>(sizeof(uint16_t));
  run_dot_rows(rest);
}

void run_bf16_rows(const panel::PanelProduct& p) {
  if (p.in >= kTileInputs) run_bf16_tiles(p);
  run_bf16_rest(p);
}

// Tiles 0 to 3 are sums, 4 and 5 rows of x, the last of which has `rows`, 6 and 7 the panels.
void set_pair_tiles(int tiles, int64_t rows) {
  TileConfig config;
  for (int i = 0; i < tiles; ++i) {
    const int64_t here = i + 1 < tiles ? kTileRows : rows;
    config.shape(2 * i, here, kTileBytes);
    config.shape(2 * i + 1, here, kTileBytes);
    config.shape(4 + i, here, kTileBytes);
  }
  config.shape(6, kTileRows, kTileBytes);
  config.shape(7, kTileRows, kTileBytes);
  set_tiles(config);
}

// kTiles tiles of x, from `row` on, with two panels: a tile that is read is multiplied twice.
template <int kTiles>
void run_pair_group(const panel::PanelProduct& a, const panel::PanelProduct& b, int64_t row) {
  const int64_t y_bytes = sum_bytes(a);
  auto* y_a = reinterpret_cast<std::byte*>(a.y + row * a.y_stride);
  auto* y_b = reinterpret_cast<std::byte*>(b.y + row * b.y_stride);
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles > 1) _tile_zero(2);
  if constexpr (kTiles > 1) _tile_zero(3);
  if (a.accumulate) {
    _tile_loadd(0, y_a, y_bytes);
    _tile_loadd(1, y_b, y_bytes);
    if constexpr (kTiles > 1) _tile_loadd(2, y_a + kTileRows * y_bytes, y_bytes);
    if constexpr (kTiles > 1) _tile_loadd(3, y_b + kTileRows * y_bytes, y_bytes);
  }
  const int64_t x_bytes = a.x.stride * static_cast<int64_t>(sizeof(uint16_t));
  const auto* x = reinterpret_cast<const std::byte*>(a.x.bf16 + row * a.x.stride);
  for (int64_t k = 0; k < a.in / kTileInputs; ++k, x += kTileBytes) {
    _tile_loadd(4, x, x_bytes);
    _tile_loadd(6, a.packed + k * kTileRows * kTileBytes, kTileBytes);
    _tile_loadd(7, b.packed + k * kTileRows * kTileBytes, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTiles > 1) {
      _tile_loadd(5, x + kTileRows * x_bytes, x_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, y_a, y_bytes);
  _tile_stored(1, y_b, y_bytes);
  if constexpr (kTiles > 1) _tile_stored(2, y_a + kTileRows * y_bytes, y_bytes);
  if constexpr (kTiles > 1) _tile_stored(3, y_b + kTileRows * y_bytes, y_bytes);
}

// All rows with as many inputs as fill tiles.
void run_pair_tiles(const panel::PanelProduct& a, const panel::PanelProduct& b) {
  constexpr int64_t kPairRows = 2 * kTileRows;
  int64_t row = 0;
  if (a.rows >= kPairRows) set_pair_tiles(2, kTileRows);
  for (; row + kPairRows <= a.rows; row += kPairRows) run_pair_group<2>(a, b, row);
  if (const int64_t rest = a.rows - row; rest > kTileRows) {
    set_pair_tiles(2, rest - kTileRows);
    run_pair_group<2>(a, b, row);
  } else if (rest > 0) {
    set_pair_tiles(1, rest);
    run_pair_group<1>(a, b, row);
  }
  release_tiles();
}

void run_bf16_pair(const panel::PanelProduct& a, const panel::PanelProduct& b) {
  if (a.in >= kTileInputs) run_pair_tiles(a, b);
  run_bf16_rest(a);
  run_bf16_rest(b);
}

}  // namespace
