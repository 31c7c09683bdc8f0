// Dense attention of bf16 with AMX.

#include "backends/cpu/simd/linear/tile_config_amx.h"
#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

#include "backends/cpu/simd/attention_bf16_loops.h"

namespace rbee::cpu {
namespace {

constexpr int kGroupTiles = 4;  // sums that share a tile on the left

// kTiles tiles of sums side by side: tiles 0 to 3, of which 4 is the left and 5 and 6 the right.
template <int kTiles, bool kAdd>
RB_INLINE void multiply_tiles(const BlockProduct& p) {
  const int64_t bytes = p.sums_step * 4;
  if constexpr (kAdd) {
    _tile_loadd(0, p.sums, bytes);
    if constexpr (kTiles > 1) _tile_loadd(1, p.sums + kLanes, bytes);
    if constexpr (kTiles > 2) _tile_loadd(2, p.sums + 2 * kLanes, bytes);
    if constexpr (kTiles > 3) _tile_loadd(3, p.sums + 3 * kLanes, bytes);
  } else {
    _tile_zero(0);
    if constexpr (kTiles > 1) _tile_zero(1);
    if constexpr (kTiles > 2) _tile_zero(2);
    if constexpr (kTiles > 3) _tile_zero(3);
  }
  const std::byte* right = p.right;
  const int64_t steps = units(p.depth, kTileInputs);
  for (int64_t step = 0; step < steps; ++step, right += p.right_depth) {
    _tile_loadd(4, p.left + step * kTileInputs, p.left_step * 2);
    _tile_loadd(5, right, kTileBytes);
    _tile_dpbf16ps(0, 4, 5);
    if constexpr (kTiles > 1) {
      _tile_loadd(6, right + p.right_tile, kTileBytes);
      _tile_dpbf16ps(1, 4, 6);
    }
    if constexpr (kTiles > 2) {
      _tile_loadd(5, right + 2 * p.right_tile, kTileBytes);
      _tile_dpbf16ps(2, 4, 5);
    }
    if constexpr (kTiles > 3) {
      _tile_loadd(6, right + 3 * p.right_tile, kTileBytes);
      _tile_dpbf16ps(3, 4, 6);
    }
  }
  _tile_stored(0, p.sums, bytes);
  if constexpr (kTiles > 1) _tile_stored(1, p.sums + kLanes, bytes);
  if constexpr (kTiles > 2) _tile_stored(2, p.sums + 2 * kLanes, bytes);
  if constexpr (kTiles > 3) _tile_stored(3, p.sums + 3 * kLanes, bytes);
}

class TileProducts {
 public:
  TileProducts() {
    TileConfig whole;
    for (int tile = 0; tile < 8; ++tile) whole.shape(tile, kLanes, kTileBytes);
    set_tiles(whole);
  }
  ~TileProducts() { release_tiles(); }
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;

  template <bool kAdd>
  static void multiply(BlockProduct p) {
    // The compiler does not see which bytes loads of tiles read.
    asm volatile("" : : : "memory");
    int64_t tiles = units(p.columns, kLanes);
    for (; tiles >= kGroupTiles; tiles -= kGroupTiles) {
      multiply_tiles<kGroupTiles, kAdd>(p);
      p.right += kGroupTiles * p.right_tile;
      p.sums += kGroupTiles * kLanes;
    }
    if (tiles == 1) multiply_tiles<1, kAdd>(p);
    if (tiles == 2) multiply_tiles<2, kAdd>(p);
    if (tiles == 3) multiply_tiles<3, kAdd>(p);
  }
};

}  // namespace

const Impl<AttentionArgs> amx_attention{"amx", refuse_plain_bf16, run_plain_bf16<TileProducts>};

}  // namespace rbee::cpu
