#pragma once

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"

namespace rbee::metal {

// Simdgroup matrices (Apple7 and later): many tokens that can be read 16 bytes at a time, on
// weights of f32, f16, bf16 and packed ones. Rounds nothing where x is f32 or bf16, and block types
// to f16 where x is f16.
extern const Impl<ExpertLinearArgs> experts_simdgroup;

}  // namespace rbee::metal
