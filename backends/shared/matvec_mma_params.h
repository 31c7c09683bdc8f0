#pragma once
// Linear layers for few rows on NVIDIA's tensor cores: as MatvecParams, but for all layers of a
// network that share an input.

#include "backends/shared/matvec_params.h"

namespace rbee {
namespace shared {

enum { kMatvecMmaParts = 24 };

struct MatvecMmaParams {
  const void* x;  // (rows, in)
  i64 in;
  i32 rows;   // 1 to 16
  i32 split;  // 1, 2, 4 or 8
  i32 part_count;
  MatvecPart parts[kMatvecMmaParts];
};

}  // namespace shared
}  // namespace rbee
