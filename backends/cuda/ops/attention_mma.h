#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// By mma.sync, for devices of sm_80 and later: keys and values f16 or bf16, q of their type or f32
// (rounded to theirs), heads of up to 256 elements in multiples of 8.
extern const Impl<AttentionArgs> attention_mma;
extern const Impl<PagedAttentionArgs> paged_attention_mma;

// Null when the matrix-unit kernels can read and write these operands, else the reason.
const char* refuse_attention_tiles(const View& q, const View& k, const View& v, const View& y);

}  // namespace rbee::cuda
