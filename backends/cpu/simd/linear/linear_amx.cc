// bf16 and f16 weights with AMX: a tile instruction multiplies 16 rows of x by 32 inputs of a
// panel, which lie as the tiles want them. f16 has 11 bits, the sum of two bf16 numbers: with x in
// two such parts as well, three products have the exactness of 16 bits. The other types use
// AVX-512's kernels.

#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/quantize_avx512.h"
#include "backends/cpu/simd/linear/vec_avx512.h"
// The products build on the vectors.
#include "backends/cpu/simd/linear/bf16_dot.h"

namespace {

constexpr int kTileRows = 16;
constexpr int kTileInputs = 32;
constexpr int kTileBytes = 64;  // of a row
constexpr int kGroup = 3;       // row tiles that share a panel's tile
constexpr int kTiles = 2 * kGroup + 1;

// The operand of ldtilecfg.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 to 2 are sums, 3 to 5 rows of x, the last of which has `rows`, and 6 the panel.
void configure(int tiles, int rows) {
  TileConfig config;
  for (int i = 0; i < kTiles; ++i) {
    config.row_bytes[i] = kTileBytes;
    config.rows[i] = kTileRows;
  }
  config.rows[tiles - 1] = config.rows[kGroup + tiles - 1] = static_cast<uint8_t>(rows);
  // The compiler does not see which bytes the tile instructions read and write.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

void release() {
  _tile_release();
  asm volatile("" : : : "memory");
}

// One product's operands: rows of x and a panel, both in bf16.
struct TileOperands {
  const uint16_t* x;
  int64_t stride;  // elements
  const std::byte* panel;
};

struct Products {
  TileOperands list[3];
  int count;
};

template <int kCount>
[[gnu::always_inline]] inline void multiply(const TileOperands& o, int64_t steps) {
  const int64_t bytes = o.stride * static_cast<int64_t>(sizeof(uint16_t));
  const auto* x = reinterpret_cast<const std::byte*>(o.x);
  const std::byte* panel = o.panel;
  for (int64_t k = 0; k < steps; ++k, x += kTileBytes, panel += kTileRows * kTileBytes) {
    _tile_loadd(6, panel, kTileBytes);
    _tile_loadd(3, x, bytes);
    _tile_dpbf16ps(0, 3, 6);
    if constexpr (kCount > 1) {
      _tile_loadd(4, x + kTileRows * bytes, bytes);
      _tile_dpbf16ps(1, 4, 6);
    }
    if constexpr (kCount > 2) {
      _tile_loadd(5, x + 2 * kTileRows * bytes, bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
  }
}

template <int kCount>
void run_group(const panel::PanelProduct& p, int64_t row, const Products& products) {
  const int64_t bytes = p.y_stride * static_cast<int64_t>(sizeof(float));
  auto* y = reinterpret_cast<std::byte*>(p.y + row * p.y_stride);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  if (p.accumulate) {
    _tile_loadd(0, y, bytes);
    if constexpr (kCount > 1) _tile_loadd(1, y + kTileRows * bytes, bytes);
    if constexpr (kCount > 2) _tile_loadd(2, y + 2 * kTileRows * bytes, bytes);
  }
  for (int i = 0; i < products.count; ++i) {
    const TileOperands& o = products.list[i];
    multiply<kCount>({o.x + row * o.stride, o.stride, o.panel}, p.in / kTileInputs);
  }
  _tile_stored(0, y, bytes);
  if constexpr (kCount > 1) _tile_stored(1, y + kTileRows * bytes, bytes);
  if constexpr (kCount > 2) _tile_stored(2, y + 2 * kTileRows * bytes, bytes);
}

// All rows with as many inputs as fill tiles.
void run_tiles(const panel::PanelProduct& p, const Products& products) {
  constexpr int64_t kGroupRows = kGroup * kTileRows;
  int64_t row = 0;
  if (p.rows >= kGroupRows) configure(kGroup, kTileRows);
  for (; row + kGroupRows <= p.rows; row += kGroupRows) run_group<kGroup>(p, row, products);
  if (const int rest = static_cast<int>(p.rows - row); rest > 0) {
    const int tiles = (rest + kTileRows - 1) / kTileRows;
    configure(tiles, rest - (tiles - 1) * kTileRows);
    if (tiles == 1) run_group<1>(p, row, products);
    if (tiles == 2) run_group<2>(p, row, products);
    if (tiles == 3) run_group<3>(p, row, products);
  }
  release();
}

// Tiles for the inputs that fill them, pairs for the others.
void run_products(const panel::PanelProduct& p, const Products& products) {
  const int64_t whole = p.in / kTileInputs * kTileInputs;
  if (whole > 0) run_tiles(p, products);
  if (whole == p.in) return;
  panel::PanelProduct rest = p;
  rest.in = (p.in - whole + 1) / 2 * 2;
  rest.accumulate = p.accumulate || whole > 0;
  for (int i = 0; i < products.count; ++i) {
    const TileOperands& o = products.list[i];
    rest.x.bf16 = o.x + whole;
    rest.x.stride = o.stride;
    rest.packed = o.panel + whole * panel::kPanelRows * static_cast<int64_t>(sizeof(uint16_t));
    run_rows(rest);
    rest.accumulate = true;
  }
}

void run_bf16_rows(const panel::PanelProduct& p) {
  run_products(p, {.list = {{p.x.bf16, p.x.stride, p.packed}}, .count = 1});
}

// What bf16 keeps of a number, cut off, and the rest.
struct Halves {
  __m512i high;  // in the upper 16 bits
  __m512i low;
};
[[gnu::always_inline]] inline Halves halves_of(__m512 x) {
  const __m512i high = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-65536));
  return {high, _mm512_castps_si512(_mm512_sub_ps(x, _mm512_castsi512_ps(high)))};
}

// A panel of f16 in two of bf16, exactly: the parts have 8 and 3 bits.
void unpack_f16(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  const auto* from = reinterpret_cast<const uint16_t*>(packed);
  for (int64_t k = 0; k < in; k += 2) {
    const Halves first = halves_of(load_halves(from + k * panel::kPanelRows, 0));
    Halves second{_mm512_setzero_si512(), _mm512_setzero_si512()};
    if (k + 1 < in) second = halves_of(load_halves(from + (k + 1) * panel::kPanelRows, 0));
    const int64_t at = k * panel::kPanelRows;
    _mm512_storeu_si512(out.high + at,
                        _mm512_or_si512(_mm512_srli_epi32(first.high, 16), second.high));
    _mm512_storeu_si512(out.low + at,
                        _mm512_or_si512(_mm512_srli_epi32(first.low, 16), second.low));
  }
}

void run_f16_rows(const panel::PanelProduct& p) {
  const auto* high = reinterpret_cast<const std::byte*>(p.panel.high);
  const auto* low = reinterpret_cast<const std::byte*>(p.panel.low);
  run_products(p, {.list = {{p.x.bf16_low, p.x.stride, high},
                            {p.x.bf16, p.x.stride, low},
                            {p.x.bf16, p.x.stride, high}},
                   .count = 3});
}

void to_bf16_pair(const float* x, int64_t in, uint16_t* high, uint16_t* low) {
  for (int64_t i = 0; i < in; i += 16) {
    const auto lanes = static_cast<__mmask16>(in - i < 16 ? (1u << (in - i)) - 1 : 0xffffu);
    const __m512 value = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m256i upper = __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(value));
    const __m512 back = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
    const __m256bh rest = _mm512_cvtneps_pbh(_mm512_sub_ps(value, back));
    _mm256_mask_storeu_epi16(high + i, lanes, upper);
    _mm256_mask_storeu_epi16(low + i, lanes, __builtin_bit_cast(__m256i, rest));
  }
}

// Single rows are left to the level below: they wait for memory.
constexpr panel::PanelKernels kBf16TileKernels{
    .input = panel::InputForm::bf16, .row = &run_row, .unpack = nullptr, .rows = &run_bf16_rows};
constexpr panel::PanelKernels kF16TileKernels{.input = panel::InputForm::bf16_pair,
                                              .row = nullptr,
                                              .unpack = &unpack_f16,
                                              .rows = &run_f16_rows};

}  // namespace

namespace rbee::cpu {

constinit const LinearIsa linear_amx{.quantize = &quantize,
                                     .to_bf16 = &to_bf16,
                                     .to_bf16_pair = &to_bf16_pair,

                                     .f32 = &linear_f32_avx512,
                                     .f16 = &kF16TileKernels,
                                     .bf16 = &kBf16TileKernels,
                                     .q4_0 = &linear_q4_0_avx512,
                                     .q4_1 = &linear_q4_1_avx512,
                                     .q5_0 = &linear_q5_0_avx512,
                                     .q5_1 = &linear_q5_1_avx512,
                                     .q8_0 = &linear_q8_0_avx512,
                                     .q2_k = &linear_q2_k_avx512,
                                     .q3_k = &linear_q3_k_avx512,
                                     .q4_k = &linear_q4_k_avx512,
                                     .q5_k = &linear_q5_k_avx512,
                                     .q6_k = &linear_q6_k_avx512,
                                     .q8_k = &linear_q8_k_avx512,
                                     .iq4_nl = &linear_iq4_nl_avx512,
                                     .iq4_xs = &linear_iq4_xs_avx512,
                                     .mxfp4 = &linear_mxfp4_avx512};

}  // namespace rbee::cpu
