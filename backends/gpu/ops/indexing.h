#pragma once

#include "backends/api/args_indexing.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Every plain dtype and id type, any strides. Deterministic.
extern const Impl<GatherArgs> gather;
extern const Impl<ScatterArgs> scatter;
extern const Impl<IndexSelectArgs> index_select;
extern const Impl<IndexAddArgs> index_add;

}  // namespace rbee::gpu
