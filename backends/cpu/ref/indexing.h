#pragma once
// The specification of indexing along an axis: any plain dtype, any strides, elements in row-major
// order.

#include "backends/api/args_indexing.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<GatherArgs> ref_gather;
extern const Impl<ScatterArgs> ref_scatter;
extern const Impl<IndexSelectArgs> ref_index_select;
extern const Impl<IndexAddArgs> ref_index_add;

}  // namespace rbee::cpu
