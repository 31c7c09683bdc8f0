#pragma once

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// gather and index_select: y = x at (place + id * step). Space: y, x (its axis standing still),
// ids.
struct GatherParams {
  const void* x;
  const void* ids;
  void* y;
  u32 id_type;  // 0: u8, 1: u32, 2: i16, 3: i32, 4: i64
  i64 step;     // elements of x between neighbours of the axis
  Strided<3> space;
};

// scatter, scatter_add and index_add. Space: lines of y, src and ids, which run along the axis.
struct ScatterParams {
  const void* src;
  const void* ids;
  void* y;
  u32 id_type;                     // as above
  i64 length;                      // ids of a line
  i64 y_step, src_step, ids_step;  // elements between neighbours of the axis
  Strided<3> lines;
};

}  // namespace shared
}  // namespace rbee
