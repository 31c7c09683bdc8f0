#pragma once

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// One pass of a reduction. `kept` (y, x) walks over outputs, and `reduced` (x) over the elements of
// one output. Each block along y of the grid takes a slice.
struct ReduceParams {
  const void* x;
  void* y;
  void* partial;    // not null: the state of [slice][output] instead of y
  u64 first;        // place of the first element of `reduced`
  u32 op;           // ReduceOp
  u32 lanes;        // threads for an output, a power of two
  u32 apart;        // threads from a lane to the next: 1, or where neighbours take neighbouring
                    // outputs, outputs of a block
  u32 slice;        // elements of a slice
  u32 first_slice;  // of `partial`
  Strided<2> kept;
  Strided<1> reduced;
};

// The last pass over partial states: [slices][count of kept].
struct ReduceFinishParams {
  const void* partial;
  void* y;
  u32 op;
  u32 lanes;
  u32 slices;
  Strided<1> kept;
};

}  // namespace shared
}  // namespace rbee
