#pragma once

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// See backends/api/args_indexing.h.
struct EmbeddingParams {
  const i32* ids;
  const void* table;
  void* y;
  i64 ids_step, table_row, y_row, y_step;  // elements; table_row: 0 for block types
  i64 count;                               // runs of all rows
  Divider row_runs;                        // runs of a row
  i32 dim;
  u32 packed;  // not 0: a run is 8 elements, and those of y (and of a plain table) adjoin, aligned
  u32 to;      // type of y; 0: f32, 1: f16, 2: bf16, 3: f64, 4: f8e4m3
  float scale;
};

}  // namespace shared
}  // namespace rbee
