// y[i] = table[ids[i]] * scale, in float. A thread takes eight neighbours, or one if the layout
// does not allow eight. Memory limits it.
#include "backends/gpu/tile.h"
#include "backends/shared/code_book_blocks.h"
#include "backends/shared/embedding_params.h"

namespace rbee {
namespace gpu {

constexpr int kRun = 8;  // divides every format's group

// A thread's elements: those of row `row` from `at` on.
struct Run {
  i64 row;
  i64 at;
  i64 id;

  RB_DEVICE Run(const EmbeddingParams& p, i64 index, i32 length)
      : row(divide_any(index, p.row_runs)),
        at((index - row * p.row_runs.divisor) * length),
        id(p.ids[row * p.ids_step]) {}
};

template <class Y, int kCount>
RB_DEVICE void store_as(const EmbeddingParams& p, const Run& run, const float (&values)[kCount]) {
  Y* y = static_cast<Y*>(p.y) + run.row * p.y_row + run.at * p.y_step;
  TileOf<Y, kCount> tile;
#pragma unroll
  for (int k = 0; k < kCount; ++k) tile.values[k] = convert<Y>(values[k] * p.scale);
  if (p.packed != 0) {
    *reinterpret_cast<TileOf<Y, kCount>*>(y) = tile;
    return;
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) y[k * p.y_step] = tile.values[k];
}

// The order of kFloats in ops/embedding.cc.
template <int kCount>
RB_DEVICE void store(const EmbeddingParams& p, const Run& run, const float (&values)[kCount]) {
  switch (p.to) {
    case 0:
      return store_as<float>(p, run, values);
    case 1:
      return store_as<f16>(p, run, values);
    case 2:
      return store_as<bf16>(p, run, values);
    case 3:
      return store_as<double>(p, run, values);
    default:
      return store_as<f8e4m3>(p, run, values);
  }
}

template <class T>
RB_DEVICE void embed_plain(const EmbeddingParams& p) {
  const i64 index = grid_thread();
  if (index >= p.count) return;
  const T* table = static_cast<const T*>(p.table);
  if (p.packed == 0) {
    const Run run(p, index, 1);
    const float values[1] = {static_cast<float>(load_value(table[run.id * p.table_row + run.at]))};
    return store(p, run, values);
  }
  const Run run(p, index, kRun);
  const auto in = load_tile<T, kRun>(In<T>{table}, run.id * p.table_row + run.at, false);
  float values[kRun];
#pragma unroll
  for (int k = 0; k < kRun; ++k) values[k] = static_cast<float>(load_value(in.values[k]));
  store(p, run, values);
}

template <class Block>
RB_DEVICE void embed_blocks(const EmbeddingParams& p) {
  const i64 index = grid_thread();
  if (index >= p.count) return;
  const Run run(p, index, kRun);
  const Block* row = static_cast<const Block*>(p.table) + run.id * (p.dim / Block::kElements);
  const Block& block = row[run.at / Block::kElements];
  const int at = static_cast<int>(run.at % Block::kElements);
  const BlockScale scale = scale_of(block, at / Block::kGroup);
  float values[kRun];
#pragma unroll
  for (int k = 0; k < kRun; ++k) values[k] = apply_scale(scale, quant_of(block, at + k));
  store(p, run, values);
}

#define RB_PLAIN(dtype, T) \
  RB_KERNEL(embedding_##dtype, kTileThreads, EmbeddingParams, (embed_plain<T>(p)))
#define RB_BLOCK(dtype, Block) \
  RB_KERNEL(embedding_##dtype, kTileThreads, EmbeddingParams, (embed_blocks<Block>(p)))
RB_EACH_FLOAT_TYPE(RB_PLAIN)
RB_EACH_BLOCK(RB_BLOCK)
RB_BLOCK(f8_g128, BlockF8_G128)
RB_EACH_FEW_BITS(RB_BLOCK)

}  // namespace gpu
}  // namespace rbee
