#pragma once
// Indexing along one axis. ids are u8, u32, i16, i32 or i64. The largest value of their type, and
// any negative id, means "no element": gather and index_select write 0, scatter, scatter_add and
// index_add skip it. All other ids must be in range: rbee/ops checks the ids that it can read.

#include <cstdint>
#include <limits>

#include "backends/api/view.h"

namespace rbee {

// True for an id that stands for "no element".
template <typename Id>
constexpr bool names_nothing(Id id) {
  return id < Id{0} || id == std::numeric_limits<Id>::max();
}

// y[.., i, ..] = x[.., ids[.., i, ..], ..] along `axis`; ids has y's sizes
struct GatherArgs {
  View x, ids, y;
  int32_t axis = 0;
};

// y starts as a copy of the destination; y[.., ids[i], ..] = (or +=) src[.., i, ..] along `axis`;
// ids has src's sizes; later elements win
struct ScatterArgs {
  View ids, src, y;
  int32_t axis = 0;
  bool add = false;
};

// y = rows of x picked along `axis` by ids (n)
struct IndexSelectArgs {
  View x, ids, y;
  int32_t axis = 0;
};

// y starts as a copy of the destination; y[.., ids[i], ..] += src[.., i, ..] along `axis`; ids: (n)
struct IndexAddArgs {
  View ids, src, y;
  int32_t axis = 0;
};

// y[i] = table[ids[i]] * scale, block types dequantised
//   ids: (n) i32, in range   table: (vocab, dim) plain or block type, contiguous rows   y: (n, dim)
struct EmbeddingArgs {
  View ids, table, y;
  float scale = 1;
};

}  // namespace rbee
