#pragma once
// Linear layers for few rows, and the packing of their weights: see backends/api/args_matmul.h.

#include "backends/shared/rope_params.h"

namespace rbee {
namespace shared {

struct PackParams {
  const void* blocks;  // (rows, in), row-major blocks as in files
  void* packed;        // rows as in packed_weight.h
  i64 rows, in;
};

enum { kUnpackEach = 8 };  // elements of a thread
struct UnpackParams {
  const void* packed;  // (rows, in)
  void* plain;         // the same, row-major
  i32 rows, in;        // rows * in < 2^32
  i32 type;            // of plain, 0: f16, 1: bf16
};

enum { kMatvecParts = 4, kMatvecRows = 8, kMatvecThreads = 256 };

// How many rows of a weight a wave works on at a time, in kernels for `batch` rows of x.
RB_FN constexpr int matvec_outs(int batch) {
  return batch >= 4 ? 4 : 2;
}
// Outstanding loads of each row for a lane: with all rows of a wave, 256.
RB_FN constexpr int matvec_steps(int wave, int batch) {
  return 256 / (wave * matvec_outs(batch));
}

// One of the weights of a launch. It has the thread blocks from first_block to the next part's.
struct MatvecPart {
  const void* weight;  // (outs, in): row-major plain, or packed
  const void* bias;    // (outs); null: none
  void* y;             // (rows, outs)
  i64 outs;
  u32 first_block;
};

// Groups of `split` waves share a part's outs; the waves of a group split a row of the weight.
struct MatvecParams {
  const void* x;  // (rows, in)
  i64 in;
  i32 rows;   // 1 to kMatvecRows
  i32 split;  // 1, 2, 4 or 8
  i32 part_count;
  MatvecPart parts[kMatvecParts];
};

// Linear layers for 5 to 64 rows of x on matrix units: weights packed (cuda/kernels/
// matvec_mma_packed.h), or also of x's type (rocm/kernels/matvec_matrix.h). A block has a tile of
// `outs` rows of a weight, and of their units of 128 elements (PackedUnit) one of `splits` shares.
struct FewRowsParams {
  const void* x;  // (rows, in)
  // If there are several splits: the partial sums (splits of tile 0, splits of tile 1, ...; rows;
  // outs).
  float* partials;
  i32 in;
  i32 rows;
  i32 outs;  // of a tile, a multiple of kFewSumOuts
  i32 splits;
  i32 tiles;
  i32 stages;  // of a ring of copies, 2 to kFewMostStages; 0: the kernel has none
  i32 floats;  // results and biases are f32; 0: of x's type
  i32 part_count;
  MatvecPart parts[kMatvecParts];  // first_block: tile
};
// NVIDIA's tiles: a block copies units to shared memory in advance, into a ring of stages that each
// hold a unit of the tile and of x.
enum { kFewOuts = 112, kFewThreads = 2 * kFewOuts, kFewBlocks = 2, kFewMostStages = 6 };
// AMD's: a block holds a unit of x in shared memory and the next one in registers, and weights
// likewise.
enum { kFewMatrixOuts = 128, kFewMatrixThreads = 256, kFewMatrixBlocks = 2 };
// Bytes of a unit of a row of x, of 16-bit types.
enum { kFewRowBytes = 256 };

// Threads of a block that adds up partials, and outputs of each.
enum { kFewSumThreads = 256, kFewSumOuts = 4 };

// x rounded to int8 by groups of 32, as matvec_quant.cu reads it.
struct QuantizedX {
  i8* quants;     // row r from r * row_bytes on, in the order of x_piece()
  void* groups;   // XGroup (rows, in / 32)
  i64 row_bytes;  // a multiple of two pieces of every lane of a wave
};
struct QuantizeXParams {
  const void* x;  // (rows, in), contiguous
  QuantizedX to;
  i64 rows, in;
};

// The same with packed weights of one block type; x, bias and y are of x_type.
struct MatvecQuantParams {
  QuantizedX x;
  i64 in;
  i32 rows;
  i32 split;
  i32 part_count;
  i32 x_type;  // 0: f32, 1: f16, 2: bf16
  MatvecPart parts[kMatvecParts];
};

// Linear layers for one row of x, see backends/gpu/kernels/matvec_one.h.
enum { kMatvecOuts = 2 };  // rows of weights that a wave works on at a time: a group
// Threads of a block, and blocks that a multiprocessor should hold at once: two for plain weights,
// and one for packed weights, because there a block's work on x costs more.
enum { kPlainOneThreads = 256, kPlainOneBlocks = 2, kPackedOneThreads = 512 };
// Pieces of 16 bytes of a plain row that a wave works on at a time (packed: kPackedTrip). A row has
// at least this many.
enum { kPlainTrip = 128 };
// The most trips in a wave's ring.
enum { kMatvecMostRing = 4 };
// The most rotated pairs of a head.
enum { kMatvecMostPairs = 128 };

struct MatvecOnePart {
  const void* weight;  // (outs, in): row-major plain, or packed
  const void* bias;    // (outs); null: none
  void* y;             // (outs)
  i32 outs;
  i32 first_group;
  i32 kind;  // with `append`: 0: queries, 1: keys, 2: values
};

// The destinations of queries, keys and values (QkvAppendArgs): queries and keys are rotated; keys
// and values go to a paged cache, and queries to their part's y.
struct MatvecHeads {
  RopeTables tables;
  const i32* position;      // (1), row of the tables
  const i32* slot;          // (1) of the cache; -1: none
  void* caches[2];          // keys, values
  i64 cache_strides[2][3];  // of block, head and key; elements adjoin
  Divider head_groups;      // half of head_dim
  i32 head_dim, block_size;
  u32 cache_to;  // as in AppendParams
};

// Rows of weights are numbered in groups: pairs of neighbouring rows of a part, the two rows of a
// rotated pair, or, with a gate, the same row of both parts. `split` waves share a group and split
// its rows.
struct MatvecOneParams {
  const void* x;            // (in)
  const void* norm_weight;  // (in): x counts as its RMS norm; null: as it is
  const void* residual;     // (outs), added to the only part's result; null: none
  i64 row_bytes;            // of a weight
  i32 high, scale, super;   // packed weights: where planes begin in a row, in bytes
  float eps;                // of the norm
  i32 in;
  i32 pieces;  // of a row
  i32 split;   // 1, 2, 4 or 8; at most the trips that a row takes
  i32 groups;  // of all parts
  i32 gate;    // 0: none; 1 + GateOp: y of the first part = act(gate, first part) * up
  i32 x_type;  // of packed weights' kernels: 0: f32, 1: f16, 2: bf16
  i32 ring;    // outstanding trips of a wave, 1 to kMatvecMostRing; with rings
  i32 part_count;
  i32 append;  // 0: results go to their parts' y
  MatvecOnePart parts[kMatvecParts];
  MatvecHeads heads;  // with append
};

// 32 inputs are d * q. The sums are those of the first and the last 16 q.
struct alignas(8) XGroup {
  float d;
  i16 sums[2];
};

}  // namespace shared
}  // namespace rbee
