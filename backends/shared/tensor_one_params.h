#pragma once
// Linear layers of one row of x on weights that the copy engine (TMA) fetches.

#include "backends/shared/matvec_params.h"
#include "backends/shared/packed_weight.h"
#include "backends/shared/tensor_map_params.h"

namespace rbee {
namespace shared {

// cuda/kernels/matvec_one_tma.h. A block goes from tile to tile of kOneTileGroups groups of
// MatvecOneParams, 32 rows of weights, through a ring of stages: kOnePieces pieces of each of the
// rows. kOneWarps of its warps multiply, one requests stages, and one writes results.
enum { kOneTileGroups = 16, kOnePieces = 32, kOneMostStages = 8, kOnePlanes = 4 };
enum { kOneWarps = 8, kOneConsumers = 32 * kOneWarps, kOneTensorThreads = kOneConsumers + 64 };
// The alignment of what the copy engine writes.
enum { kOneAlignment = 128 };

RB_FN constexpr int to_16(int bytes) {
  return static_cast<int>(to_16_bytes(bytes));
}
// A stage's bytes of a row: a multiple of 16 for each plane. For planes with fewer bytes, the
// engine fetches from the multiple of 16 before them.
template <class Block>
struct PackedStage {
  using Trip = PackedTrip<Block>;
  static constexpr int kTrip = kPackedTrip, kOfTrip = kTrip / kOnePieces;
  static_assert(kTrip % kOnePieces == 0, "a trip is whole stages");
  static constexpr int kElements = Trip::kElements / kOfTrip;
  static constexpr int kLow = Trip::kLow / kOfTrip, kHigh = Trip::kHigh / kOfTrip;
  static constexpr int kScale = Trip::kScale / kOfTrip, kSuper = Trip::kSuper / kOfTrip;
  static constexpr int kBytes = kLow + kHigh + to_16(kScale) + to_16(kSuper);
};

// The same of plain weights of 16 bits: one plane.
struct PlainStage {
  static constexpr int kLow = 16 * kOnePieces, kHigh = 0, kScale = 0, kSuper = 0;
  static constexpr int kElements = kLow / 2;
  static constexpr int kBytes = kLow;
};

// Bytes of the code book in shared memory: points one after another, each in several copies to
// avoid bank conflicts (fewer for large books), and after them the SignTable, likewise.
template <class Block>
struct OneBook {
  static constexpr int kPoints = BookOf<Block>::kPoints;
  static constexpr int kPointCopies = kPoints > 1024 ? 1 : kPoints > 256 ? 16 : 32;
  static constexpr int kSignCopies = 32;
  static constexpr int kPointBytes = 4 * kPoints * kPointCopies;
  static constexpr int kBytes = kPointBytes + 4 * SignTable<Block>::kEntries * kSignCopies;
  static_assert(kBytes % kOneAlignment == 0, "stages lie behind it");
};

// If weights are multiplied as 16-bit floats, x is a sum of at most this many terms of their type.
// For f16 (also for e4m3 codes, which become f16), the terms have a power of two for each
// kOneScaled inputs.
enum { kOneMostTerms = 3, kOneScaled = 128 };

struct TensorOneParams {
  MatvecOneParams one;  // without split and ring
  // Of each part the planes low, high, scale and super, as many as its format has: 16-bit words,
  // (words of a row, rows, 1, 1). Plain weights are plane low.
  TensorMap maps[kMatvecParts][kOnePlanes];
  i32 tiles;
  i32 steps;   // stages of a row
  i32 stages;  // of the ring, 2 to kOneMostStages
  i32 early;   // the most stages requested before the previous kernel has ended
  i32 terms;   // of x, 1 to kOneMostTerms; 0: weights are multiplied as integers
  // Whether the previous, or the next, kernel is another launch of the same product, which reads
  // the same x and writes elsewhere.
  i32 after_another, before_another;
};

}  // namespace shared
}  // namespace rbee
