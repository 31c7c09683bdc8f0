#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/shared/rope_params.h"

namespace rbee::gpu {

// Any float dtype, any strides; caches of f32, f16 or bf16.
extern const Impl<RopeArgs> rope;
extern const Impl<KvAppendArgs> kv_append;
extern const Impl<RopeAppendArgs> rope_append;

shared::RopeTables rope_tables(const View& cos, const View& sin, RopeLayout layout);
// AppendParams::cache_to of a plain cache.
uint32_t rope_cache_type(DType dtype);

}  // namespace rbee::gpu
