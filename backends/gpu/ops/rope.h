#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Any float dtype, any strides; caches of f32, f16 or bf16.
extern const Impl<RopeArgs> rope;
extern const Impl<KvAppendArgs> kv_append;
extern const Impl<RopeAppendArgs> rope_append;

}  // namespace rbee::gpu
