#pragma once
// Dense attention of bf16 for image models: every query sees every key. Both products take bf16,
// and the weights are rounded to it; maxima, exponentials and sums are f32 (Dao et al. 2022,
// "FlashAttention", algorithm 1). The two products come from the instruction set:
//   struct Products {
//     Products();  // a thread has one while it works on a range of tasks
//     template <bool kAdd> static void multiply(const BlockProduct&);
//   };
// Include after vec_avx512.h.

#include "backends/api/impl.h"
#include "backends/cpu/simd/attention_rows.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/workspace.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kKeyBlock = 128;  // keys whose scores of 16 queries are weighed at a time
constexpr int kKeyVecs = kKeyBlock / kLanes;
constexpr int64_t kTileInputs = 32;             // elements of bf16 that a tile is deep
constexpr int64_t kLineBytes = 64;              // pairs of elements of 16 columns
constexpr int64_t kTileSize = 16 * kLineBytes;  // bytes
constexpr int64_t kMostRows = 192;              // queries that share one reading of the keys
constexpr int64_t kRowElements = 96 * 1024;     // of them together
constexpr int64_t kTasksPerThread = 4;
constexpr int64_t kSmallWork = 65536;  // multiplications below which one thread does it all

RB_INLINE int64_t units(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// Sizes of one operation's buffers.
struct Sizes {
  int64_t height;   // queries of a task, a multiple of 16
  int64_t steps;    // tiles of 32 elements that a head's query and key take
  int64_t columns;  // tiles of 16 elements that a head's value takes

  int64_t depth() const { return steps * kTileInputs; }
  int64_t width() const { return columns * kLanes; }
};

// Buffers of one thread.
struct Block {
  std::byte* keys;    // (key tile of 16, step), each tile 16 pairs of elements x 16 keys
  std::byte* values;  // (32 keys, column tile), each tile 16 pairs of keys x 16 elements
  float* scores;      // (16, kKeyBlock)
  uint16_t* weights;  // the same as bf16
  uint16_t* q;        // (height, depth), filled up with zeros
  float* out;         // (height, width), not yet divided by `total`
  float* top;         // (height) largest score so far
  float* total;       // (height) sum of exp(score - top)

  static int64_t bytes(const Sizes& s) {
    const int64_t of_keys = kKeyBlock * 2 * (s.depth() + s.width()) + 16 * kKeyBlock * 6;
    return of_keys + s.height * (2 * s.depth() + 4 * s.width() + 8);
  }
  static Block in(std::byte* memory, const Sizes& s) {
    Block b;
    const auto take = [&](int64_t bytes) {
      std::byte* at = memory;
      memory += bytes;
      return at;
    };
    b.keys = take(kKeyBlock * 2 * s.depth());
    b.values = take(kKeyBlock * 2 * s.width());
    b.scores = reinterpret_cast<float*>(take(16 * kKeyBlock * 4));
    b.weights = reinterpret_cast<uint16_t*>(take(16 * kKeyBlock * 2));
    b.q = reinterpret_cast<uint16_t*>(take(s.height * 2 * s.depth()));
    b.out = reinterpret_cast<float*>(take(s.height * 4 * s.width()));
    b.top = reinterpret_cast<float*>(take(s.height * 4));
    b.total = reinterpret_cast<float*>(take(s.height * 4));
    return b;
  }
};

// Elements [first, first + 32) of a row of `size`, zeros beyond it and for null.
RB_INLINE __m512i load_words(const bf16* row, int64_t first, int64_t size) {
  if (row == nullptr) return _mm512_setzero_si512();
  const int64_t left = size - first;
  const __mmask32 mask = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
  return _mm512_maskz_loadu_epi16(mask, row + first);
}

RB_INLINE void load_queries(const HeadRows& work, const Sizes& sizes, const Block& block) {
  const int64_t dim = work.args.q.sizes[3];
  for (int64_t r = 0; r < units(work.rows, 16) * 16; ++r) {
    const bf16* from =
        r < work.rows ? work.row<const bf16>(work.args.q, work.head, work.first + r) : nullptr;
    for (int64_t i = 0; i < sizes.depth(); i += kTileInputs) {
      _mm512_storeu_si512(block.q + r * sizes.depth() + i, load_words(from, i, dim));
    }
  }
}

// rows[i] word j becomes rows[j] word i.
RB_INLINE void transpose_words(__m512i (&rows)[16]) {
  __m512i pairs[16], fours[16], eights[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  // fours[4 g + i]: words i, 4 + i, 8 + i and 12 + i of rows 4 g to 4 g + 3
  for (int g = 0; g < 16; g += 4) {
    fours[g] = _mm512_unpacklo_epi64(pairs[g], pairs[g + 2]);
    fours[g + 1] = _mm512_unpackhi_epi64(pairs[g], pairs[g + 2]);
    fours[g + 2] = _mm512_unpacklo_epi64(pairs[g + 1], pairs[g + 3]);
    fours[g + 3] = _mm512_unpackhi_epi64(pairs[g + 1], pairs[g + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    eights[i] = _mm512_shuffle_i32x4(fours[i], fours[4 + i], 0x88);
    eights[4 + i] = _mm512_shuffle_i32x4(fours[i], fours[4 + i], 0xdd);
    eights[8 + i] = _mm512_shuffle_i32x4(fours[8 + i], fours[12 + i], 0x88);
    eights[12 + i] = _mm512_shuffle_i32x4(fours[8 + i], fours[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(eights[i], eights[8 + i], 0x88);
    rows[8 + i] = _mm512_shuffle_i32x4(eights[i], eights[8 + i], 0xdd);
    rows[4 + i] = _mm512_shuffle_i32x4(eights[4 + i], eights[12 + i], 0x88);
    rows[12 + i] = _mm512_shuffle_i32x4(eights[4 + i], eights[12 + i], 0xdd);
  }
}

// Row `key` of one head, null from `end` on.
RB_INLINE const bf16* key_row(const HeadRows& work, const View& view, int64_t key, int64_t end) {
  return key < end ? work.row<const bf16>(view, work.kv_head(), key) : nullptr;
}

// Keys [key, key + kKeyBlock), those from `end` on zeros.
RB_INLINE void load_keys(const HeadRows& work, const Sizes& sizes, int64_t key, int64_t end,
                         std::byte* to) {
  const int64_t dim = work.args.k.sizes[3];
  for (int64_t tile = 0; tile < kKeyBlock; tile += 16) {
    for (int64_t step = 0; step < sizes.steps; ++step, to += kTileSize) {
      __m512i rows[16];
      for (int i = 0; i < 16; ++i) {
        const bf16* row = key_row(work, work.args.k, key + tile + i, end);
        rows[i] = load_words(row, step * kTileInputs, dim);
      }
      transpose_words(rows);
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kLineBytes, rows[i]);
    }
  }
}

// Elements [first, first + 16) of a row, one in each word.
RB_INLINE __m512i load_halves(const bf16* row, int64_t first, int64_t size) {
  if (row == nullptr) return _mm512_setzero_si512();
  const int64_t left = size - first;
  const auto mask = left >= 16 ? __mmask16{0xffff} : first_lanes(left);
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row + first));
}

RB_INLINE void load_values(const HeadRows& work, const Sizes& sizes, int64_t key, int64_t end,
                           std::byte* to) {
  const int64_t dim = work.args.v.sizes[3];
  for (int64_t pair = 0; pair < kKeyBlock; pair += 2) {
    const bf16* even = key_row(work, work.args.v, key + pair, end);
    const bf16* odd = key_row(work, work.args.v, key + pair + 1, end);
    std::byte* line =
        to + pair / kTileInputs * sizes.columns * kTileSize + pair % kTileInputs / 2 * kLineBytes;
    for (int64_t c = 0; c < sizes.columns; ++c) {
      const __m512i upper = _mm512_slli_epi32(load_halves(odd, c * kLanes, dim), 16);
      _mm512_storeu_si512(line + c * kTileSize,
                          _mm512_or_si512(load_halves(even, c * kLanes, dim), upper));
    }
  }
}

// sums (16, columns in sixteens) = or += left (16, depth) times right (depth, columns), which lies
// in tiles of 16 columns.
struct BlockProduct {
  const uint16_t* left;
  int64_t left_step;                // elements of a row
  const std::byte* right;           // each tile 16 pairs of depth x 16 columns
  int64_t right_tile, right_depth;  // bytes to the next tile, and to the one 32 elements deeper
  int64_t depth, columns;           // elements; left and right hold zeros up to whole tiles
  float* sums;
  int64_t sums_step;  // elements of a row
};

// 2^t of t <= 0, good to 3e-6, which is less than rounding to bf16 takes; next to 0 for minus
// infinity, keeps NaN.
RB_INLINE Vec exp2_of_negative(Vec t) {
  t = max(splat(-127.0f), t);
  const Vec n = round_even(t);
  const Vec r = t - n;
  Vec p = splat(1.33335581e-3f);  // ln(2)^i / i!
  p = fma(p, r, splat(9.61812911e-3f));
  p = fma(p, r, splat(5.55041087e-2f));
  p = fma(p, r, splat(2.40226507e-1f));
  p = fma(p, r, splat(6.93147181e-1f));
  p = fma(p, r, splat(1.0f));
  return _mm512_scalef_ps(p, n);
}

// Turns the scores of `count` keys into weights under the new maximum, and rescales the sums so
// far. Scores and maxima are in units of ln(2).
template <bool kWhole>
RB_INLINE void weigh_row(const Sizes& sizes, const Block& block, int64_t row, float scale,
                         int64_t count) {
  const float* from = block.scores + row % 16 * kKeyBlock;
  Vec scores[kKeyVecs];
  Vec highest = splat(-__builtin_inff());
#pragma GCC unroll 8
  for (int v = 0; v < kKeyVecs; ++v) {
    const int64_t left = kWhole ? kLanes : within(count - v * kLanes, 0, kLanes);
    const auto seen = static_cast<__mmask16>((1u << left) - 1);
    scores[v] =
        _mm512_mask_mul_ps(splat(-__builtin_inff()), seen, load(from + v * kLanes), splat(scale));
    highest = max(highest, scores[v]);
  }
  const float before = block.top[row], high = largest(highest);
  const float top = high > before ? high : before;
  uint16_t* to = block.weights + row % 16 * kKeyBlock;
  Vec added = splat(0.0f);
  if (top == -__builtin_inff()) {  // no score of this row is above it so far, unless it is NaN
    for (int v = 0; v < kKeyVecs; ++v) {
      const __mmask16 undefined = _mm512_cmp_ps_mask(scores[v], scores[v], _CMP_UNORD_Q);
      const Vec weight = _mm512_maskz_mov_ps(undefined, scores[v]);
      added = added + weight;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + v * kLanes),
                          __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(weight)));
    }
    block.total[row] += sum(added);
    return;
  }
#pragma GCC unroll 8
  for (int v = 0; v < kKeyVecs; ++v) {
    const Vec weight = exp2_of_negative(scores[v] - splat(top));
    added = added + weight;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + v * kLanes),
                        __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(weight)));
  }
  if (top != before) {
    float factor[kLanes];
    store(factor, exp2_of_negative(splat(before - top)));
    float* out = block.out + row * sizes.width();
    for (int64_t i = 0; i < sizes.width(); i += kLanes) {
      store(out + i, load(out + i) * splat(factor[0]));
    }
    block.total[row] *= factor[0];
    block.top[row] = top;
  }
  block.total[row] += sum(added);
}

RB_INLINE void weigh_rows(const Sizes& sizes, const Block& block, int64_t row, float scale,
                          int64_t count) {
  constexpr float kLog2OfE = 1.44269504f;
  for (int64_t r = row; r < row + 16; ++r) {
    if (count == kKeyBlock) {
      weigh_row<true>(sizes, block, r, scale * kLog2OfE, count);
    } else {
      weigh_row<false>(sizes, block, r, scale * kLog2OfE, count);
    }
  }
}

template <typename Products>
RB_INLINE void attend_block(const HeadRows& work, const Sizes& sizes, const Block& block,
                            int64_t count) {
  for (int64_t row = 0; row < work.rows; row += 16) {
    Products::template multiply<false>({.left = block.q + row * sizes.depth(),
                                        .left_step = sizes.depth(),
                                        .right = block.keys,
                                        .right_tile = sizes.steps * kTileSize,
                                        .right_depth = kTileSize,
                                        .depth = work.args.q.sizes[3],
                                        .columns = count,
                                        .sums = block.scores,
                                        .sums_step = kKeyBlock});
    weigh_rows(sizes, block, row, work.args.scale, count);
    Products::template multiply<true>({.left = block.weights,
                                       .left_step = kKeyBlock,
                                       .right = block.values,
                                       .right_tile = kTileSize,
                                       .right_depth = sizes.columns * kTileSize,
                                       .depth = count,
                                       .columns = sizes.width(),
                                       .sums = block.out + row * sizes.width(),
                                       .sums_step = sizes.width()});
  }
}

RB_INLINE void store_rows(const HeadRows& work, const Sizes& sizes, const Block& block) {
  const int64_t dim = work.args.v.sizes[3];
  for (int64_t r = 0; r < work.rows; ++r) {
    const Vec factor = splat(block.total[r] > 0 ? 1.0f / block.total[r] : 0.0f);
    const float* out = block.out + r * sizes.width();
    bf16* y = work.row<bf16>(work.args.y, work.head, work.first + r);
    for (int64_t i = 0; i < dim; i += kLanes) {
      const __m256bh rounded = _mm512_cvtneps_pbh(load(out + i) * factor);
      const auto mask = dim - i >= kLanes ? __mmask16{0xffff} : first_lanes(dim - i);
      _mm256_mask_storeu_epi16(y + i, mask, __builtin_bit_cast(__m256i, rounded));
    }
  }
}

template <typename Products>
void attend_rows(const HeadRows& work, const Sizes& sizes, const Block& block) {
  load_queries(work, sizes, block);
  for (int64_t i = 0; i < sizes.height; i += kLanes) {
    store(block.top + i, splat(-__builtin_inff()));
    store(block.total + i, splat(0.0f));
  }
  for (int64_t i = 0; i < sizes.height * sizes.width(); i += kLanes) {
    store(block.out + i, splat(0.0f));
  }
  const int64_t keys = work.args.k.sizes[2];
  for (int64_t key = 0; key < keys; key += kKeyBlock) {
    load_keys(work, sizes, key, keys, block.keys);
    load_values(work, sizes, key, keys, block.values);
    attend_block<Products>(work, sizes, block, within(keys - key, 0, kKeyBlock));
  }
  store_rows(work, sizes, block);
}

Sizes sizes_of(const AttentionArgs& args, int64_t threads) {
  const int64_t queries = args.q.sizes[2], heads = args.q.sizes[0] * args.q.sizes[1];
  Sizes sizes;
  sizes.steps = units(args.q.sizes[3], kTileInputs);
  sizes.columns = units(args.v.sizes[3], kLanes);
  const int64_t fitting = kRowElements / (sizes.depth() + 2 * sizes.width());
  const int64_t share = heads * queries / (kTasksPerThread * threads);
  const int64_t rows = within(within(share, 48, kMostRows), 16, fitting < 16 ? 16 : fitting);
  const int64_t tasks = units(queries, rows);
  sizes.height = units(units(queries, tasks), 16) * 16;
  return sizes;
}

const char* refuse_plain_bf16(const AttentionArgs& args) {
  if (args.q.dtype != DType::bf16) return "takes bf16";
  if (args.causal || args.window > 0) return "takes queries that see every key";
  if (args.mask.data != nullptr || args.alibi_slopes.data != nullptr || args.softcap != 0) {
    return "takes plain scores";
  }
  for (const View* view : {&args.q, &args.k, &args.v, &args.y}) {
    if (view->strides[3] != 1) return "takes heads without gaps";
  }
  return nullptr;
}

template <typename Products>
void run_plain_bf16(const AttentionArgs& args, Stream&) {
  const int64_t queries = args.q.sizes[2], heads = args.q.sizes[1];
  const int64_t all_heads = args.q.sizes[0] * heads;
  if (queries == 0 || all_heads == 0) return;
  ThreadPool& pool = ThreadPool::shared();
  const Sizes sizes = sizes_of(args, pool.threads());
  const int64_t block_bytes = units(Block::bytes(sizes), 64) * 64;
  std::byte* memory = thread_workspace(pool.threads() * block_bytes);
  const int64_t count = all_heads * units(queries, sizes.height);
  const bool small = all_heads * queries * args.k.sizes[2] * args.q.sizes[3] < kSmallWork;
  pool.parallel_for(count, small ? count : 1, [&](int64_t begin, int64_t end, int thread) {
    const Block block = Block::in(memory + thread * block_bytes, sizes);
    [[maybe_unused]] const Products products;  // AMX's sets up the thread's tiles
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / all_heads * sizes.height, head = i % all_heads;
      const int64_t rows = within(queries - first, 0, sizes.height);
      attend_rows<Products>({args, head / heads, head % heads, first, rows}, sizes, block);
    }
  });
}

}  // namespace
}  // namespace rbee::cpu
