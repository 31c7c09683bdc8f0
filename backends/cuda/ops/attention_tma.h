#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Hopper: f16 and bf16, heads of up to 256 elements, scores that are scaled products, and dense
// keys and values that the copy engine can fetch.
extern const Impl<AttentionArgs> attention_tma;

}  // namespace rbee::cuda
