#pragma once
// Finds the part of the weights that a tile of few rows (FewRowsParams) belongs to.
#include "backends/gpu/portable.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

RB_DEVICE MatvecPart few_part(const FewRowsParams& p, u32 tile) {
  MatvecPart part = p.parts[0];
  // Unrolled: see MatvecTile.
#pragma unroll
  for (int i = 1; i < kMatvecParts; ++i) {
    if (i < p.part_count && tile >= p.parts[i].first_block) part = p.parts[i];
  }
  return part;
}

}  // namespace gpu
}  // namespace rbee
