#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/gpu/ops/linear_one.h"

namespace rbee::gpu {

// One token; heads of an even number of elements, caches of f32, f16, bf16 or f8e4m3.
extern const Impl<QkvAppendArgs> qkv_append_one;

// For products with another launch.
const char* refuse_qkv_append(const QkvAppendArgs& args);
void run_qkv_append(const QkvAppendArgs& args, StartOneRow start, Stream& stream);

}  // namespace rbee::gpu
