#pragma once
// Attention of a few query rows over a range of keys, tile by tile with a running maximum (Dao et
// al. 2022, "FlashAttention", algorithm 1). Include after a vec header.

namespace rbee::cpu {
namespace {

constexpr int kKeys = 32;     // keys of a tile
constexpr int kPanel = 32;    // columns that one register tile covers
constexpr int kMaxRows = 48;  // query rows of a tile, unless the caller has more
constexpr int kPanelVecs = kPanel / kLanes;
constexpr float kNothing = -__builtin_inff();
constexpr float kUndefined = __builtin_nanf("");

// Buffers of one thread; all floats.
struct AttentionTile {
  int64_t dim;         // of a head
  int64_t padded_dim;  // dim, up to whole vectors
  float* q;            // (rows, dim), scaled
  float* keys;         // (dim, kKeys): transposed
  float* values;       // (kKeys, padded_dim)
  float* scores;       // (rows, kKeys)
  float* out;          // (rows, padded_dim), not yet divided by `total`
  float* top;          // (rows) largest score so far
  float* sums;         // (rows, kLanes): added up, sum of exp(score - top)

  static int64_t padded(int64_t dim) { return (dim + kLanes - 1) / kLanes * kLanes; }
  static int64_t floats(int64_t dim, int64_t rows = kMaxRows) {
    const int64_t padded = AttentionTile::padded(dim);
    return rows * (dim + kKeys + padded + kLanes + 1) + kKeys * (dim + padded);
  }
  // Cuts `memory` of floats(dim, rows) up; 64-byte aligned parts as far as dim allows.
  static AttentionTile in(float* memory, int64_t dim, int64_t rows = kMaxRows) {
    AttentionTile tile;
    tile.dim = dim;
    tile.padded_dim = padded(dim);
    tile.keys = memory;
    tile.values = tile.keys + kKeys * dim;
    tile.scores = tile.values + kKeys * tile.padded_dim;
    tile.out = tile.scores + rows * kKeys;
    tile.sums = tile.out + rows * tile.padded_dim;
    tile.q = tile.sums + rows * kLanes;
    tile.top = tile.q + rows * dim;
    return tile;
  }

  float total(int64_t row) const { return sum(load(sums + row * kLanes)); }
};

// c (kRows, kVecs vectors) = or += a (kRows, k) * b (k, kVecs vectors)
template <int kRows, int kVecs, bool kAdd>
RB_INLINE void multiply_panel(const float* a, int64_t a_step, const float* b, int64_t b_step,
                              float* c, int64_t c_step, int64_t k) {
  Vec acc[kRows][kVecs];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) {
      acc[r][v] = kAdd ? load(c + r * c_step + v * kLanes) : splat(0.0f);
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    Vec left[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = splat(a[r * a_step + i]);
    for (int v = 0; v < kVecs; ++v) {
      const Vec right = load(b + i * b_step + v * kLanes);
      for (int r = 0; r < kRows; ++r) acc[r][v] = fma(left[r], right, acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) store(c + r * c_step + v * kLanes, acc[r][v]);
  }
}

// Whole register tiles first, then halves of them.
template <int kRows, int kVecs, bool kAdd>
void multiply_rows(const float* a, int64_t a_step, const float* b, int64_t b_step, float* c,
                   int64_t c_step, int64_t rows, int64_t k) {
  for (; rows >= kRows; rows -= kRows) {
    multiply_panel<kRows, kVecs, kAdd>(a, a_step, b, b_step, c, c_step, k);
    a += kRows * a_step;
    c += kRows * c_step;
  }
  if constexpr (kRows > 1) {
    if (rows > 0) multiply_rows<kRows / 2, kVecs, kAdd>(a, a_step, b, b_step, c, c_step, rows, k);
  }
}

// tile.keys column j = *rows[j]; null rows give zeros.
template <typename Row>
RB_INLINE void load_keys(const AttentionTile& tile, const Row rows[kKeys]) {
  for (int first = 0; first < kKeys; first += 8) {
    int64_t i = 0;
    for (; i + 8 <= tile.dim; i += 8) {
      Vec8 block[8];
      for (int j = 0; j < 8; ++j) {
        const Row row = rows[first + j];
        block[j] = row != nullptr ? load8(row + i) : splat8(0.0f);
      }
      transpose8(block);
      for (int j = 0; j < 8; ++j) store8(tile.keys + (i + j) * kKeys + first, block[j]);
    }
    for (; i < tile.dim; ++i) {
      for (int j = first; j < first + 8; ++j) {
        tile.keys[i * kKeys + j] = rows[j] != nullptr ? load1(rows[j] + i) : 0.0f;
      }
    }
  }
}

// tile.values row j = *rows[j]; null rows and the columns past dim are zeros.
template <typename Row>
RB_INLINE void load_values(const AttentionTile& tile, const Row rows[kKeys]) {
  for (int j = 0; j < kKeys; ++j) {
    float* to = tile.values + j * tile.padded_dim;
    int64_t i = 0;
    if (rows[j] != nullptr) {
      for (; i + 8 <= tile.dim; i += 8) store8(to + i, load8(rows[j] + i));
      for (; i < tile.dim; ++i) to[i] = load1(rows[j] + i);
    }
    for (; i < tile.padded_dim; ++i) to[i] = 0.0f;
  }
}

// Scores of keys outside [first, end) of the tile become "nothing".
RB_INLINE void hide_keys(float* scores, int64_t first, int64_t end) {
  for (int64_t j = 0; j < kKeys; ++j) {
    if (j < first || j >= end) scores[j] = kNothing;
  }
}

RB_INLINE void cap_scores(float* scores, int64_t rows, float softcap) {
  const Vec inverse = splat(1.0f / softcap);
  for (int64_t i = 0; i < rows * kKeys; i += kLanes) {
    store(scores + i, splat(softcap) * tanh_of_score(load(scores + i) * inverse));
  }
}

// The factor from sums under the maximum `before` to sums under `top`.
RB_INLINE void rescale_row(const AttentionTile& tile, int64_t row, float before, float top) {
  const Vec factor = exp(splat(before - top));
  float* out = tile.out + row * tile.padded_dim;
  for (int64_t i = 0; i < tile.padded_dim; i += kLanes) store(out + i, load(out + i) * factor);
  float* sums = tile.sums + row * kLanes;
  store(sums, load(sums) * factor);
  tile.top[row] = top;
}

// Turns scores into weights under the maximum so far, which few tiles raise. A NaN score makes the
// row NaN, even if it is the row's only key and maxima ignore it.
RB_INLINE void update_row(const AttentionTile& tile, int64_t row) {
  float* scores = tile.scores + row * kKeys;
  Vec highest = load(scores);
  for (int j = kLanes; j < kKeys; j += kLanes) highest = max(highest, load(scores + j));
  float top = tile.top[row];
  if (any_above(highest, top)) {
    const float before = top;
    top = largest(highest);
    if (top == kNothing) top = kUndefined;  // nothing else is above it
    rescale_row(tile, row, before, top);
  } else if (top == kNothing) {  // no key of this row so far
    Vec added = splat(0.0f);
    for (int j = 0; j < kKeys; j += kLanes) {
      const Vec weight = exp_of_negative(load(scores + j));  // 0, or NaN
      store(scores + j, weight);
      added = added + weight;
    }
    if (any_above(added, 0.0f)) tile.top[row] = kUndefined;
    return;
  }
  float* sums = tile.sums + row * kLanes;
  Vec added = load(sums);
  for (int j = 0; j < kKeys; j += kLanes) {
    const Vec weight = exp_of_negative(load(scores + j) - splat(top));
    store(scores + j, weight);
    added = added + weight;
  }
  store(sums, added);
}

RB_INLINE void start_rows(const AttentionTile& tile, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    tile.top[r] = kNothing;
    store(tile.sums + r * kLanes, splat(0.0f));
  }
  for (int64_t i = 0; i < rows * tile.padded_dim; i += kLanes) store(tile.out + i, splat(0.0f));
}

RB_INLINE void score_keys(const AttentionTile& tile, int64_t rows) {
  multiply_rows<kTileRows, kPanelVecs, false>(tile.q, tile.dim, tile.keys, kKeys, tile.scores,
                                              kKeys, rows, tile.dim);
}

// kVecs vectors of columns of the result, in register tiles of as many sums as whole panels have.
template <int kVecs>
RB_INLINE void add_columns(const AttentionTile& tile, int64_t rows, int64_t column) {
  constexpr int kRows = kTileRows * kPanelVecs / kVecs;
  multiply_rows<kRows, kVecs, true>(tile.scores, kKeys, tile.values + column, tile.padded_dim,
                                    tile.out + column, tile.padded_dim, rows, kKeys);
}

RB_INLINE void add_values(const AttentionTile& tile, int64_t rows) {
  int64_t column = 0;
  for (; column + kPanel <= tile.padded_dim; column += kPanel) {
    add_columns<kPanelVecs>(tile, rows, column);
  }
  for (; column + 2 * kLanes <= tile.padded_dim; column += 2 * kLanes) {
    add_columns<2>(tile, rows, column);
  }
  if (column < tile.padded_dim) add_columns<1>(tile, rows, column);
}

}  // namespace
}  // namespace rbee::cpu
